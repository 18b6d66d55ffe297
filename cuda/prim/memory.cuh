// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_MEMORY_CUH_
#define INCIPIT_CUDA_PRIM_MEMORY_CUH_

#include "cuda/prim/types.cuh"

// Accesses of memory by values of 1, 2, 4, 8 or 16 aligned bytes, each one instruction. The
// emulator counts sectors of global memory and bank conflicts of shared memory, and checks the
// alignment.

namespace incipit::cuda::prim {

#if INCIPIT_CUDA_EMULATED

template <class T>
INCIPIT_DEVICE T load(const T* from, Site site = Site::here()) {
  simt::note_access(simt::Access::kGlobalLoad, from, sizeof(T), site);
  return *from;
}
template <class T>
INCIPIT_DEVICE void store(T* to, const T& value, Site site = Site::here()) {
  simt::note_access(simt::Access::kGlobalStore, to, sizeof(T), site);
  *to = value;
}
/// Of memory that nobody writes while the kernel runs.
template <class T>
INCIPIT_DEVICE T load_constant(const T* from, Site site = Site::here()) {
  return load(from, site);
}
template <class T>
INCIPIT_DEVICE T shared_load(const T* from, Site site = Site::here()) {
  simt::note_access(simt::Access::kSharedLoad, from, sizeof(T), site);
  return *from;
}
template <class T>
INCIPIT_DEVICE void shared_store(T* to, const T& value, Site site = Site::here()) {
  simt::note_access(simt::Access::kSharedStore, to, sizeof(T), site);
  *to = value;
}

#else

template <unsigned kBytes>
struct Word;
template <>
struct Word<1> {
  using Type = unsigned char;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<4> {
  using Type = unsigned;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};
template <class T>
using WordOf = typename Word<sizeof(T)>::Type;

template <class T>
INCIPIT_DEVICE T load(const T* from, Site = Site::here()) {
  const WordOf<T> word = *reinterpret_cast<const WordOf<T>*>(from);
  return bit_cast<T>(word);
}
template <class T>
INCIPIT_DEVICE void store(T* to, const T& value, Site = Site::here()) {
  *reinterpret_cast<WordOf<T>*>(to) = bit_cast<WordOf<T> >(value);
}
template <class T>
INCIPIT_DEVICE T load_constant(const T* from, Site = Site::here()) {
  const WordOf<T> word = __ldg(reinterpret_cast<const WordOf<T>*>(from));
  return bit_cast<T>(word);
}
template <class T>
INCIPIT_DEVICE T shared_load(const T* from, Site = Site::here()) {
  const WordOf<T> word = *reinterpret_cast<const WordOf<T>*>(from);
  return bit_cast<T>(word);
}
template <class T>
INCIPIT_DEVICE void shared_store(T* to, const T& value, Site = Site::here()) {
  *reinterpret_cast<WordOf<T>*>(to) = bit_cast<WordOf<T> >(value);
}

#endif

/// Calls visit(i, count) for groups of up to kWidth of `columns` neighbours, group g by thread
/// g % kThreads: the elements of a thread, and their order, depend on `columns` alone.
template <unsigned kWidth, unsigned kThreads, class Visit>
INCIPIT_DEVICE void for_each_group(unsigned columns, const Visit& visit) {
  for (unsigned first = thread_x() * kWidth; first < columns; first += kThreads * kWidth) {
    visit(first, columns - first < kWidth ? columns - first : kWidth);
  }
}

/// True if groups of 16 bytes can be accessed as such from `data` on.
template <class T>
INCIPIT_DEVICE bool is_packed(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

/// kWidth neighbours of a row, as one access where they are `packed`, else element by element; what
/// lies behind `count` is zero.
template <unsigned kWidth, class T>
INCIPIT_DEVICE Pack<T, kWidth> load_group(const T* from, unsigned count, bool packed,
                                          Site site = Site::here()) {
  using Group = Pack<T, kWidth>;
  if (packed && count == kWidth) return load(reinterpret_cast<const Group*>(from), site);
  Group group = {};
  for (unsigned i = 0; i < kWidth; ++i) {
    if (i < count) group[i] = load(from + i, site);
  }
  return group;
}
template <unsigned kWidth, class T>
INCIPIT_DEVICE void store_group(T* to, const Pack<T, kWidth>& group, unsigned count, bool packed,
                                Site site = Site::here()) {
  if (packed && count == kWidth) {
    store(reinterpret_cast<Pack<T, kWidth>*>(to), group, site);
    return;
  }
  for (unsigned i = 0; i < kWidth; ++i) {
    if (i < count) store(to + i, group[i], site);
  }
}

/// `count` of kWidth floats that nobody writes meanwhile, 16 bytes at a time where they are
/// aligned; the rest is zero.
template <unsigned kWidth>
INCIPIT_DEVICE void load_floats(float (&to)[kWidth], const float* from, unsigned count,
                                bool aligned, Site site = Site::here()) {
  static_assert(kWidth % 4 == 0);
  if (aligned && count == kWidth) {
    for (unsigned i = 0; i < kWidth; i += 4) {
      const auto four = load_constant(reinterpret_cast<const Pack<float, 4>*>(from + i), site);
      for (unsigned j = 0; j < 4; ++j) to[i + j] = four[j];
    }
    return;
  }
  for (unsigned i = 0; i < kWidth; ++i) to[i] = i < count ? load_constant(from + i, site) : 0.0f;
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_MEMORY_CUH_
