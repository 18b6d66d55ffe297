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
  return bit_cast<T>(*reinterpret_cast<const WordOf<T>*>(from));
}
template <class T>
INCIPIT_DEVICE void store(T* to, const T& value, Site = Site::here()) {
  *reinterpret_cast<WordOf<T>*>(to) = bit_cast<WordOf<T>>(value);
}
template <class T>
INCIPIT_DEVICE T load_constant(const T* from, Site = Site::here()) {
  return bit_cast<T>(__ldg(reinterpret_cast<const WordOf<T>*>(from)));
}
template <class T>
INCIPIT_DEVICE T shared_load(const T* from, Site = Site::here()) {
  return bit_cast<T>(*reinterpret_cast<const WordOf<T>*>(from));
}
template <class T>
INCIPIT_DEVICE void shared_store(T* to, const T& value, Site = Site::here()) {
  *reinterpret_cast<WordOf<T>*>(to) = bit_cast<WordOf<T>>(value);
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

/// True if groups of 16 bytes can be accessed as such from `data` on, in each row.
template <class T>
INCIPIT_DEVICE bool is_packed(const T* data, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % kPackOf<T> == 0;
}

/// A group of 16 bytes of a row, as one access where it may be, else element by element; what lies
/// behind `count` is zero.
template <class T>
INCIPIT_DEVICE Pack<T, kPackOf<T>> load_group(const T* from, unsigned count, bool packed,
                                              Site site = Site::here()) {
  using Group = Pack<T, kPackOf<T>>;
  if (packed && count == kPackOf<T>) return load(reinterpret_cast<const Group*>(from), site);
  Group group = {};
  for (unsigned i = 0; i < kPackOf<T>; ++i) {
    if (i < count) group[i] = load(from + i, site);
  }
  return group;
}
template <class T>
INCIPIT_DEVICE void store_group(T* to, const Pack<T, kPackOf<T>>& group, unsigned count,
                                bool packed, Site site = Site::here()) {
  using Group = Pack<T, kPackOf<T>>;
  if (packed && count == kPackOf<T>) {
    store(reinterpret_cast<Group*>(to), group, site);
    return;
  }
  for (unsigned i = 0; i < kPackOf<T>; ++i) {
    if (i < count) store(to + i, group[i], site);
  }
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_MEMORY_CUH_
