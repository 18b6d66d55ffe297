// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "incipit/store.h"

namespace incipit::inline v0 {

std::shared_ptr<Store> make_memcached_store(MemcachedStoreOptions) {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "this build of incipit has no memcached store; install libmemcached-dev "
                    "(libmemcached) and configure incipit with -DINCIPIT_WITH_MEMCACHED=ON");
}

}  // namespace incipit::inline v0
