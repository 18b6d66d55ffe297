// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_policy.h"

#include "base/check.h"
#include "kv/arc_policy.h"
#include "kv/gdsf_policy.h"
#include "kv/lru_policy.h"
#include "kv/s3_fifo_policy.h"

namespace incipit::kv {

std::unique_ptr<EvictionPolicy> make_eviction_policy(Eviction kind, std::size_t capacity) {
  switch (kind) {
    case Eviction::kLru:
      return std::make_unique<LruPolicy>(capacity);
    case Eviction::kS3Fifo:
      return std::make_unique<S3FifoPolicy>(capacity);
    case Eviction::kArc:
      return std::make_unique<ArcPolicy>(capacity);
    case Eviction::kGdsf:
      return std::make_unique<GdsfPolicy>(capacity);
  }
  base::throw_error(ErrorCode::kInvalidArgument, "unknown eviction policy");
}

}  // namespace incipit::kv
