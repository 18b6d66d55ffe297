// SPDX-License-Identifier: Apache-2.0
// What a build without zstd says, and how it takes what others have compressed.
#include "incipit/error.h"
#include "incipit/prefix_cache.h"
#include "kv/compression.h"
#include "sealed_records.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

TEST_CASE("a build without zstd says what compression needs, and finds nothing compressed") {
  CHECK_FALSE(kv::have_compression());
  PrefixCacheOptions options;
  options.tiers = {{.store = make_memory_store(1 << 20), .compress = true}};
  CHECK_THROWS_WITH(PrefixCache(options),
                    Catch::Contains("libzstd-dev") && Catch::Contains("INCIPIT_WITH_ZSTD"));
  CHECK_THROWS_AS(PrefixCache(options), Error);
  CHECK_FALSE(kv::decompress(pattern(100, 1), 1000));
}

}  // namespace
}  // namespace incipit::test
