// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "fuzz/target.h"
#include "kv/cache_file.h"
#include "kv/prefix_cache_impl.h"
#include "support/fake_device.h"
#include "support/memory_file.h"
#include "support/temporary_directory.h"

namespace incipit::fuzz {
namespace {

using kv::KvCache;

constexpr std::size_t kBlocks = 8;

device::KvLayout layout() {
  return device::KvLayout(
      {.layers = 1, .kv_heads = 1, .head_dim = 1, .type = device::KvFormat::kF32});
}

kv::Sealer sealer() { return kv::Sealer(kv::SealerOptions{}); }

template <class T>
std::string text(const T& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// A pool as an engine of the model "m" registers it.
struct Pool {
  Pool()
      : cache(device, layout(), {.blocks = kBlocks}),
        registry(std::make_shared<kv::CacheRegistry>(PrefixCacheOptions{})),
        registration(registry->add(cache, device, "m")) {}

  void insert(std::vector<TokenId> tokens, const CacheLabels& labels) {
    KvCache::Match match;
    const std::string name_space = kv::name_space_of("m", labels.salt, labels.version);
    cache.start(name_space, labels, tokens, tokens.size(), match);
    cache.extend(match.table, tokens.size());
    cache.commit(match.table, tokens);
  }

  test::FakeDevice device;
  KvCache cache;
  std::shared_ptr<kv::CacheRegistry> registry;
  kv::CacheRegistry::Registration registration;
};

void load(const std::string& file) {
  Pool pool;
  const test::MemoryFile on_disk(file);
  pool.registry->load(on_disk.path());
  pool.cache.check_integrity();
}

/// The records of a file, each sealed well: what somebody makes who knows the format.
std::string sealed(std::string_view bodies) {
  std::string file;
  StoreBuffer record;
  for (std::uint64_t index = 0; bodies.size() >= 2; ++index) {
    const std::size_t wanted = static_cast<unsigned char>(bodies[0]) +
                               std::size_t{static_cast<unsigned char>(bodies[1])} * 256;
    bodies.remove_prefix(2);
    const std::string_view body = bodies.substr(0, wanted);
    bodies.remove_prefix(body.size());
    std::ranges::copy(base::as_bytes(body), kv::Sealer::make_room(record, body.size()).begin());
    const kv::Sealer maker = sealer();
    maker.seal(record, kv::RecordKind::kRun,
               maker.name(kv::RecordKind::kRun, std::as_bytes(std::span(&index, 1))), {});
    file += text(std::uint64_t{record.bytes().size()});
    file.append(reinterpret_cast<const char*>(record.bytes().data()), record.bytes().size());
  }
  return file;
}

void run(std::string_view bytes) {
  load(std::string(bytes));
  load(sealed(bytes));
}

/// The bodies of a file that was written here, as sealed() takes them.
std::string bodies_of(std::string_view file) {
  std::string bodies;
  while (file.size() > sizeof(std::uint64_t)) {
    std::uint64_t size = 0;
    std::ranges::copy(file.substr(0, sizeof(size)), reinterpret_cast<char*>(&size));
    const std::string_view body =
        file.substr(sizeof(size), size)
            .substr(kv::Sealer::kHeaderBytes,
                    size - kv::Sealer::kHeaderBytes - kv::Sealer::kTrailerBytes);
    bodies += text(static_cast<std::uint16_t>(body.size()));
    bodies += body;
    file.remove_prefix(sizeof(size) + size);
  }
  return bodies;
}

std::vector<std::string> seeds() {
  Pool pool;
  std::vector<TokenId> tokens(33, 7);
  pool.insert(tokens, {.session = "s", .tags = {"a", "b"}});
  tokens.back() = 8;
  tokens.resize(49, 9);
  pool.insert(tokens, {});
  pool.insert(tokens, {.salt = "x", .version = "2", .time_to_live = std::chrono::hours(1)});
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "cache";
  pool.registry->save(path);
  std::ifstream in(path, std::ios::binary);
  const std::string file(std::istreambuf_iterator<char>(in), {});
  return {file, bodies_of(file)};
}

}  // namespace

constexpr Target kCacheFile = {run, seeds};

}  // namespace incipit::fuzz
