// SPDX-License-Identifier: Apache-2.0
#include "machine_limits.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/target.h"

#if INCIPIT_CPU_X86
#include <immintrin.h>
#endif

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPasses = 9;                          // the best one counts
constexpr std::size_t kBufferBytes = std::size_t{1} << 29;  // of all threads together
constexpr std::uint64_t kRounds = std::uint64_t{1} << 22;   // of each peak: some 30 ms
constexpr std::size_t kChains = 24;  // independent sums: more than latency x units

/// What the peak loops start from. A compiler must not know it, nor that all chains do the same.
volatile const float kOpaque = 1.0f;

/// When one thread did its part of a pass.
struct Span {
  Clock::time_point begin = {}, end = {};
};

/// The shortest pass of `work(thread)` on that many threads, in seconds. Each thread does
/// `prepare(thread)` first, and reads the clock itself: with all CPUs at work, one that watches
/// would come too late.
double best_pass(unsigned threads, const std::function<void(unsigned)>& prepare,
                 const std::function<void(unsigned)>& work) {
  std::vector<std::array<Span, kPasses>> spans(threads);
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> team;
  for (unsigned thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      prepare(thread);
      for (Span& span : spans[thread]) {
        barrier.arrive_and_wait();
        span.begin = Clock::now();
        work(thread);
        span.end = Clock::now();
      }
    });
  }
  team.clear();  // joins
  double best = 0.0;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    Span all = spans[0][pass];
    for (const auto& one : spans) {
      all.begin = std::min(all.begin, one[pass].begin);
      all.end = std::max(all.end, one[pass].end);
    }
    const double seconds = std::chrono::duration<double>(all.end - all.begin).count();
    best = pass == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// Eight independent sums, so that loads and not additions are waited for.
std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= values.size(); i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += values[i + j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t part : sums) total += part;
  return total;
}

double memory_bytes(unsigned threads) {
  const std::size_t count = kBufferBytes / sizeof(std::uint64_t) / threads;
  std::vector<std::vector<std::uint64_t>> slices(threads);
  std::vector<std::uint64_t> totals(threads);
  // A slice is first written, and so placed, by the thread that reads it.
  const double seconds = best_pass(
      threads, [&](unsigned thread) { slices[thread].assign(count, thread + 1); },
      [&](unsigned thread) { totals[thread] += sum(slices[thread]); });
  volatile std::uint64_t used = 0;
  for (const std::uint64_t total : totals) used = used + total;
  return static_cast<double>(count * sizeof(std::uint64_t) * threads) / seconds;
}

/// Each of these does kChains x kRounds instructions and returns something that depends on them.
float multiply_add() {
  const float x = kOpaque;
  float sums[kChains * 4];
  for (float& one : sums) one = kOpaque;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (float& one : sums) one = one * x + x;
  }
  float total = 0.0f;
  for (const float one : sums) total += one;
  return total;
}

#if INCIPIT_CPU_X86
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX2)
float fma_avx2() {
  const __m256 x = _mm256_set1_ps(kOpaque);
  __m256 sums[kChains / 2];
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains / 2; ++i) sums[i] = _mm256_set1_ps(kOpaque);
  for (std::uint64_t round = 0; round < kRounds * 2; ++round) {
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kChains / 2; ++i) sums[i] = _mm256_fmadd_ps(x, x, sums[i]);
  }
  __m256 total = x;
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains / 2; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}
INCIPIT_TARGET_END

INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512)
float fma_avx512() {
  const __m512 x = _mm512_set1_ps(kOpaque);
  __m512 sums[kChains];
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(kOpaque);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(x, x, sums[i]);
  }
  __m512 total = x;
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

float int8_dot_avx512() {
  // g++ 12 keeps an array of __m512i in memory, whose elements are wider.
  using Ints = int __attribute__((vector_size(64)));
  const __m512i x = _mm512_set1_epi32(static_cast<int>(kOpaque));
  Ints sums[kChains];
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) {
    sums[i] = reinterpret_cast<Ints>(_mm512_set1_epi32(static_cast<int>(kOpaque)));
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kChains; ++i) {
      const __m512i sum = _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sums[i]), x, x);
      sums[i] = reinterpret_cast<Ints>(sum);
    }
  }
  Ints total = sums[0];
  INCIPIT_UNROLL
  for (std::size_t i = 1; i < kChains; ++i) total += sums[i];
  return static_cast<float>(total[0]);
}
INCIPIT_TARGET_END

INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512_BF16)
float bf16_dot_avx512() {
  const __m512 ones = _mm512_set1_ps(kOpaque);
  const __m512bh x = _mm512_cvtne2ps_pbh(ones, ones);
  __m512 sums[kChains];
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(kOpaque);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], x, x);
  }
  __m512 total = ones;
  INCIPIT_UNROLL
  for (std::size_t i = 0; i < kChains; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}
INCIPIT_TARGET_END
#endif

/// Operations per second of a peak loop whose instructions do so many each.
double peak(unsigned threads, float (*loop)(), double operations) {
  std::vector<float> results(threads);
  const double seconds = best_pass(
      threads, [](unsigned) {}, [&](unsigned thread) { results[thread] = loop(); });
  volatile float used = 0.0f;
  for (const float result : results) used = used + result;
  return static_cast<double>(kChains * kRounds) * operations * threads / seconds;
}

}  // namespace

MachineLimits measure_limits(unsigned threads, incipit::CpuPath path) {
  MachineLimits limits;
  limits.memory_bytes = memory_bytes(threads);
#if INCIPIT_CPU_X86
  const bool avx2 = path != incipit::CpuPath::kScalar && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && path != incipit::CpuPath::kAvx2 &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  if (avx512) {
    limits.f32_flops = peak(threads, fma_avx512, 16 * 2);
    limits.int8_ops = peak(threads, int8_dot_avx512, 64 * 2);
    if (__builtin_cpu_supports("avx512bf16")) {
      limits.bf16_flops = peak(threads, bf16_dot_avx512, 32 * 2);
    }
    return limits;
  }
  if (avx2) {
    limits.f32_flops = peak(threads, fma_avx2, 8 * 2);
    return limits;
  }
#endif
  static_cast<void>(path);
  limits.f32_flops = peak(threads, multiply_add, 4 * 2);
  return limits;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace bench
