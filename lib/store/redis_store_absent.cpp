// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "incipit/store.h"

namespace incipit::inline v0 {

std::shared_ptr<Store> make_redis_store(RedisStoreOptions) {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "this build of incipit has no Redis store; install libhiredis-dev (hiredis) "
                    "and configure incipit with -DINCIPIT_WITH_REDIS=ON");
}

}  // namespace incipit::inline v0
