// SPDX-License-Identifier: Apache-2.0
// What a build without hiredis or libmemcached says.
#include "incipit/error.h"
#include "incipit/store.h"
#include "support/catch.h"

namespace incipit {
namespace {

#if !INCIPIT_TEST_REDIS
TEST_CASE("a build without hiredis says what its Redis store needs") {
  CHECK_THROWS_WITH(make_redis_store({}),
                    Catch::Contains("libhiredis-dev") && Catch::Contains("INCIPIT_WITH_REDIS"));
  CHECK_THROWS_AS(make_redis_store({}), Error);
}
#endif

#if !INCIPIT_TEST_MEMCACHED
TEST_CASE("a build without libmemcached says what its memcached store needs") {
  CHECK_THROWS_WITH(make_memcached_store({}), Catch::Contains("libmemcached-dev") &&
                                                  Catch::Contains("INCIPIT_WITH_MEMCACHED"));
  CHECK_THROWS_AS(make_memcached_store({}), Error);
}
#endif

}  // namespace
}  // namespace incipit
