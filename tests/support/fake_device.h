// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_FAKE_DEVICE_H_
#define INCIPIT_TESTS_SUPPORT_FAKE_DEVICE_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "device/device.h"

namespace incipit::test {

/// A device that stores and copies but cannot compute.
class FakeDevice : public device::Device {
 public:
  bool fail_copies = false;

  const device::DeviceInfo& info() const noexcept override { return info_; }

  device::Buffer allocate(std::size_t bytes) override {
    void* const data = ::operator new(bytes, kAlignment);
    std::memset(data, 0, bytes);
    return {data, bytes,
            [](void* memory, std::size_t) noexcept { ::operator delete(memory, kAlignment); }};
  }
  void upload(base::Bytes from, std::byte* to) override {
    std::memcpy(to, from.data(), from.size());
  }
  void download(const std::byte* from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from, to.size());
  }
  void copy_block(const device::KvPoolView& pool, device::BlockId from,
                  device::BlockId to) override {
    if (fail_copies) throw std::runtime_error("no copy today");
    std::memcpy(pool.block(to), pool.block(from), pool.layout.block_bytes());
  }

  std::unique_ptr<device::Weight> make_weight(tensor::DType, std::size_t, std::size_t,
                                              ReadRows) override {
    refuse();
  }
  void embed(const device::Weight&, std::span<const std::int32_t>, float, device::Matrix) override {
    refuse();
  }
  void rms_norm(device::ConstMatrix, std::span<const float>, float, device::Matrix) override {
    refuse();
  }
  void layer_norm(device::ConstMatrix, std::span<const float>, std::span<const float>, float,
                  device::Matrix) override {
    refuse();
  }
  void matmul(device::ConstMatrix, std::span<const device::Product>) override { refuse(); }
  void add(device::Matrix, device::ConstMatrix) override { refuse(); }
  void rope(device::Matrix, std::size_t, device::ConstMatrix, device::RopePairs) override {
    refuse();
  }
  void activate(device::Activation, device::ConstMatrix, device::ConstMatrix,
                device::Matrix) override {
    refuse();
  }
  void soft_cap(device::Matrix, float) override { refuse(); }
  void append_kv(const device::KvPoolView&, std::size_t, device::ConstMatrix, device::ConstMatrix,
                 std::span<const device::KvSlot>) override {
    refuse();
  }
  void attention(const device::KvPoolView&, const device::AttentionParams&,
                 const device::AttentionPlan&, device::ConstMatrix, device::Matrix) override {
    refuse();
  }
  void gather_rows(device::ConstMatrix, std::span<const std::uint32_t>, device::Matrix) override {
    refuse();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};

  [[noreturn]] static void refuse() { throw std::logic_error("FakeDevice computes nothing"); }

  device::DeviceInfo info_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_FAKE_DEVICE_H_
