// SPDX-License-Identifier: Apache-2.0
#include "kv/cache_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "kv/cold_tier.h"

namespace incipit::kv {
namespace {

using device::kBlockTokens;

// Of one record, and of one string or list in it: what is longer is no record of ours.
constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{1} << 30;

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  base::throw_error(ErrorCode::kInvalidArgument, "the cache file '" + path.string() + "' " + what);
}

std::string random_suffix() {
  std::uint64_t number = 0;
  base::fill_random(std::as_writable_bytes(std::span(&number, 1)));
  std::string suffix = ".partial.";
  suffix += std::to_string(number);
  return suffix;
}

// The name of the i-th record: a record out of place does not open.
StoreKey record_name(const Sealer& sealer, std::uint64_t index) {
  return sealer.name(RecordKind::kRun, std::as_bytes(std::span(&index, 1)));
}

// Builds the part of a record in front of the payload.
class Output {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Output& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Output& put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  Output& put(const std::vector<std::string>& texts) {
    put(static_cast<std::uint32_t>(texts.size()));
    for (const std::string& text : texts) put(text);
    return *this;
  }
  Output& put(std::span<const TokenId> tokens) {
    put(static_cast<std::uint32_t>(tokens.size()));
    const base::Bytes raw = std::as_bytes(tokens);
    bytes_.append(reinterpret_cast<const char*>(raw.data()), raw.size());
    return *this;
  }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

// Reads untrusted bytes with base::ByteReader, which throws where they end early.
std::string get_text(base::ByteReader& in) {
  const base::Bytes bytes = in.take(in.read<std::uint32_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> get_texts(base::ByteReader& in) {
  std::vector<std::string> texts;
  for (auto count = in.read<std::uint32_t>(); count > 0; --count) texts.push_back(get_text(in));
  return texts;
}

std::vector<TokenId> get_tokens(base::ByteReader& in) {
  const auto count = in.read<std::uint32_t>();
  const base::Bytes bytes = in.take(std::uint64_t{count} * sizeof(TokenId));
  std::vector<TokenId> tokens(count);
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(tokens)).begin());
  return tokens;
}

std::string facts_of(const SavedRun& run) {
  return Output()
      .put(run.name_space)
      .put(run.salt)
      .put(run.version)
      .put(run.labels.sessions)
      .put(static_cast<std::uint8_t>(run.labels.common))
      .put(run.labels.tags)
      .put(static_cast<std::uint8_t>(run.labels.any_tag))
      .put(std::span<const TokenId>(run.tokens).subspan(run.first_block * kBlockTokens))
      .put(run.front)
      .put(run.first_block)
      .put(run.block_bytes)
      .put(run.expires)
      .bytes();
}

// False where the bytes are no run.
bool parse(base::Bytes body, SavedRun& run) {
  try {
    base::ByteReader in(body, "cache file");
    run.name_space = get_text(in);
    run.salt = get_text(in);
    run.version = get_text(in);
    run.labels.sessions = get_texts(in);
    run.labels.common = in.read<std::uint8_t>() != 0;
    run.labels.tags = get_texts(in);
    run.labels.any_tag = in.read<std::uint8_t>() != 0;
    run.tokens = get_tokens(in);  // its own
    run.front = in.read<std::uint64_t>();
    run.first_block = in.read<std::uint32_t>();
    run.block_bytes = in.read<std::uint64_t>();
    run.expires = in.read<WallSeconds>();
    run.payload = in.take(in.remaining());
  } catch (const Error&) {
    return false;
  }
  const std::size_t blocks = run.tokens.size() / kBlockTokens;
  return blocks > 0 && run.tokens.size() % kBlockTokens == 0 && run.block_bytes > 0 &&
         run.payload.size() % run.block_bytes == 0 &&
         run.payload.size() / run.block_bytes == blocks;
}

}  // namespace

CacheFileWriter::CacheFileWriter(const std::filesystem::path& path, const Sealer& sealer)
    : path_(path), temporary_(path.string() + random_suffix()), sealer_(sealer) {
  // It holds prompts: nobody else may read it, and no link leads it elsewhere.
  const int made =
      open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (made >= 0) {
    close(made);
    file_.open(temporary_, std::ios::binary);
  }
  if (!file_.is_open()) fail(path_, "cannot be written; is its folder there, and writable?");
}

CacheFileWriter::~CacheFileWriter() {
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

std::size_t CacheFileWriter::add(KvCache& cache, device::Device& device) {
  const std::size_t step = extent_blocks(cache.pool().layout.block_bytes());
  const std::size_t before = written_.size();
  std::size_t at = 0;
  while (const std::optional<BlockTable> path = cache.next_path(at)) {
    PathNames names = cache.names(*path);
    const PathFacts facts = cache.facts(*path);
    // Element i + 1 stands for block i. Pools change meanwhile: a block's number proves nothing.
    const std::vector<Digest256> chain = prefix_chain(names.name_space, names.tokens);
    const std::size_t end = std::min(facts.blocks.size(), chain.size() - 1);
    SavedRun run;
    run.name_space = std::move(names.name_space);
    run.salt = std::move(names.salt);
    run.version = std::move(names.version);
    run.block_bytes = cache.pool().layout.block_bytes();
    for (std::size_t first = 0; first < end;) {
      std::size_t last = first;  // behind the run
      while (last < end && last - first < step && !written_.contains(chain[last + 1]) &&
             facts.blocks[last].label_set == facts.blocks[first].label_set) {
        written_[chain[++last]] = records_;
      }
      if (last == first) {
        ++first;
        continue;
      }
      run.labels = facts.label_sets.at(facts.blocks[first].label_set);
      // A block expires no later than those in front of it.
      const std::chrono::seconds life = facts.blocks[last - 1].life;
      run.expires = life == std::chrono::seconds::max() ? 0 : wall_seconds_now() + life.count();
      run.front = first == 0 ? kNoRecord : written_.at(chain[first]);
      run.first_block = static_cast<std::uint32_t>(first);
      run.tokens.assign(names.tokens.begin(),
                        names.tokens.begin() + static_cast<std::ptrdiff_t>(last * kBlockTokens));
      add_run(run, path->blocks().subspan(first, last - first), cache, device);
      first = last;
    }
  }
  return written_.size() - before;
}

void CacheFileWriter::add_run(const SavedRun& run, std::span<const BlockId> blocks,
                              const KvCache& cache, device::Device& device) {
  const std::string facts = facts_of(run);
  std::span<std::byte> body =
      Sealer::make_room(record_, facts.size() + blocks.size() * run.block_bytes);
  std::ranges::copy(base::as_bytes(facts), body.begin());
  body = body.subspan(facts.size());
  for (const BlockId block : blocks) {
    device.download(cache.pool().block(block), body.first(run.block_bytes));
    body = body.subspan(run.block_bytes);
  }
  const StoreKey name = record_name(sealer_, records_++);
  sealer_.seal(record_, RecordKind::kRun, name, std::chrono::seconds(0));
  const std::uint64_t size = record_.bytes().size();
  file_.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file_.write(reinterpret_cast<const char*>(record_.bytes().data()),
              static_cast<std::streamsize>(size));
}

void CacheFileWriter::finish() {
  file_.close();
  bool whole = !file_.fail();
  if (const int file = open(temporary_.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) {
    whole = fsync(file) == 0 && whole;
    close(file);
  }
  if (!whole) fail(path_, "could not be written whole; is the disk full?");
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) fail(path_, "could not be given its name");
}

CacheFileReader::CacheFileReader(const std::filesystem::path& path, const Sealer& sealer,
                                 std::size_t most_blocks)
    : sealer_(sealer), most_blocks_(most_blocks), file_(path, std::ios::binary) {
  std::error_code error;
  left_ = std::filesystem::file_size(path, error);
  if (!file_ || error) fail(path, "cannot be read");
}

bool CacheFileReader::next(SavedRun& run) {
  std::uint64_t size = 0;
  if (left_ < sizeof(size)) return false;
  file_.read(reinterpret_cast<char*>(&size), sizeof(size));
  left_ -= sizeof(size);
  if (!file_ || size > left_ || size > kMaxRecordBytes) return false;
  const std::span<std::byte> bytes = record_.resize(size);
  file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  left_ -= size;
  if (!file_) return false;
  const auto body = sealer_.open(record_, RecordKind::kRun, record_name(sealer_, seen_.size()));
  run = {};  // no blocks: nothing to restore
  seen_.emplace_back();
  if (!body || !parse(*body, run)) {
    run = {};
    return true;
  }
  seen_.back() = {run.name_space, run.front, run.first_block, run.tokens};
  const std::size_t end = run.first_block + run.tokens.size() / kBlockTokens;
  if (end > most_blocks_ || !put_in_front(run)) run = {};
  return true;
}

/// Puts the tokens in front of a run's own. False where not all of them are known.
bool CacheFileReader::put_in_front(SavedRun& run) const {
  std::vector<std::span<const TokenId>> parts = {run.tokens};
  std::size_t blocks = run.first_block;  // whose tokens are still to be found
  std::size_t record = seen_.size() - 1;
  for (std::uint64_t front = run.front; blocks > 0; front = seen_[record].front) {
    if (front >= record) return false;  // a run stands behind what it names
    record = front;
    const Seen& seen = seen_[record];
    if (seen.name_space != run.name_space || seen.first_block >= blocks ||
        blocks - seen.first_block > seen.tokens.size() / kBlockTokens) {
      return false;
    }
    parts.push_back(std::span(seen.tokens).first((blocks - seen.first_block) * kBlockTokens));
    blocks = seen.first_block;
  }
  std::vector<TokenId> tokens;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    tokens.insert(tokens.end(), part->begin(), part->end());
  }
  run.tokens = std::move(tokens);
  return true;
}

std::size_t restore(const SavedRun& run, KvCache& cache, device::Device& device) {
  const WallSeconds now = wall_seconds_now();
  if (run.block_bytes != cache.pool().layout.block_bytes()) return 0;
  if (run.expires != 0 && run.expires <= now) return 0;
  const std::size_t blocks = run.tokens.size() / kBlockTokens;
  CacheLabels labels;
  labels.salt = run.salt;
  labels.version = run.version;
  if (run.expires != 0) labels.time_to_live = std::chrono::seconds(run.expires - now);
  // From the start on, so that nobody finds the blocks without them.
  labels.tags = run.labels.tags;
  if (!run.labels.common && !run.labels.sessions.empty()) {
    labels.session = run.labels.sessions.front();
  }
  std::vector<TokenId> tokens = run.tokens;
  tokens.push_back(0);  // a look-up leaves one token out
  KvCache::Match match;
  if (!cache.start(run.name_space, labels, tokens, tokens.size(), match,
                   {.counts = false, .is_demand = false})) {
    return 0;
  }
  const std::size_t known = match.table.committed();
  if (known < run.first_block || known >= blocks) return 0;
  cache.extend(match.table, run.tokens.size());
  for (std::size_t block = known; block < blocks; ++block) {
    device.upload(run.payload.subspan((block - run.first_block) * run.block_bytes, run.block_bytes),
                  cache.pool().block(match.table.blocks()[block]));
  }
  cache.commit(match.table, run.tokens);
  cache.add_labels(match.table, known, blocks - known, run.labels);
  return blocks - known;
}

}  // namespace incipit::kv
