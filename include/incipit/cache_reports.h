// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CACHE_REPORTS_H_
#define INCIPIT_CACHE_REPORTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/export.h"
#include "incipit/sampling.h"

namespace incipit::inline v0 {

/// Why a prompt is not known any further than it is.
enum class MissReason {
  kNothingMissing,  ///< All of it is known, save what fills no block of 16 tokens.
  kNeverStored,     ///< Nobody computed it with these labels, or that was too long ago to tell.
  kEvicted,         ///< It made room for something else.
  kExpired,         ///< Its time to live was over.
  kInvalidated,     ///< It was forgotten on command.
  kOtherSalt,       ///< Known for another CacheLabels::salt only.
  kOtherVersion,    ///< Known for another CacheLabels::version only.
  kOtherModel,      ///< Known for another model, KV type or numerics only.
};

/// The enumerator's name without its `k`, in lower case with underscores: "other_salt".
INCIPIT_API std::string_view to_string(MissReason reason) noexcept;

/// What Engine::explain_miss() says of a prompt.
struct MissExplanation {
  std::size_t prompt_tokens = 0;  ///< Of the text.
  std::size_t known_tokens = 0;   ///< That a prompt can take from the engine's pool.
  std::size_t stored_tokens = 0;  ///< That it could load from the tier that has most.
  std::string stored_in = {};     ///< That tier's name; empty where no tier has any.
  MissReason reason = MissReason::kNothingMissing;  ///< Of what comes behind these.
  /// The first token that is missing, and its text; -1 and empty where none is.
  TokenId missing_token = -1;
  std::string missing_text = {};   ///< See missing_token.
  std::string expected_text = {};  ///< What the prompt that is known has there, where one has.
};

/// What Engine::validate() found.
struct CacheValidation {
  std::size_t tokens = 0;         ///< Of the text.
  std::size_t reused_tokens = 0;  ///< That came from the cache; 0: there was nothing to compare.
  /// With and without the cache the logits are the same bits; under GpuMath::kFast: the
  /// probabilities of the next token differ by no more than 5 % in all.
  bool equal = true;
};

/// A change of what an engine's pool knows. Identities are hashes of whole prefixes, of the model
/// and of the labels that decide who shares; a pool never has two blocks of one prefix, so what was
/// removed is gone.
struct CacheEvent {
  /// What happened.
  enum class Kind : std::uint8_t {
    kStored,   ///< A block can be found from now on; that in front of it can, too.
    kRemoved,  ///< It cannot be found any more.
    kCleared   ///< Nothing can.
  };
  Kind kind = Kind::kStored;            ///< What happened.
  std::uint64_t sequence = 0;           ///< One more than that of the event before.
  std::uint64_t identity = 0;           ///< Of the prefix that ends with the block.
  std::uint64_t parent = 0;             ///< Of the prefix in front of it.
  std::array<TokenId, 16> tokens = {};  ///< Of the block, where it was stored.

  friend bool operator==(const CacheEvent&, const CacheEvent&) = default;  ///< All members.
};

/// Events in order.
struct CacheEvents {
  std::vector<CacheEvent> events = {};  ///< Of a snapshot: one per block, parents first.
  std::uint64_t next = 0;               ///< What to ask for after these.
  bool lost = false;  ///< What was asked for is not kept any more: take a snapshot.
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_CACHE_REPORTS_H_
