// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_FORWARDING_DEVICE_H_
#define INCIPIT_TESTS_SUPPORT_FORWARDING_DEVICE_H_

#include <memory>
#include <utility>

#include "device/device.h"

namespace incipit::test {

/// Another device whose memory the host has to download: as a GPU's.
class ForwardingDevice final : public device::Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<device::Device> device)
      : device_(std::move(device)), info_(device_->info()) {
    info_.host_memory = false;
  }

  std::size_t downloads = 0;
  std::size_t steps = 0;   // that have ended
  bool no_memory = false;  // for attention

  const device::DeviceInfo& info() const noexcept override { return info_; }
  device::Buffer allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  void upload(base::Bytes from, std::byte* to) override { device_->upload(from, to); }
  void download(const std::byte* from, std::span<std::byte> to) override {
    INCIPIT_CHECK(!in_step_);  // nothing is there yet
    ++downloads;
    device_->download(from, to);
  }
  std::unique_ptr<device::Weight> make_weight(tensor::DType type, std::size_t rows,
                                              std::size_t columns, ReadRows read) override {
    return device_->make_weight(type, rows, columns, read);
  }
  void begin_step(std::size_t rows) override {
    INCIPIT_CHECK(!in_step_ && rows > 0);
    in_step_ = true;
  }
  void end_step() override {
    INCIPIT_CHECK(in_step_);
    in_step_ = false;
    ++steps;
  }
  void embed(const device::Weight& table, std::span<const std::int32_t> ids, float scale,
             device::Matrix out) override {
    device_->embed(table, ids, scale, out);
  }
  void rms_norm(device::ConstMatrix x, std::span<const float> weight, float epsilon,
                device::Matrix out) override {
    device_->rms_norm(x, weight, epsilon, out);
  }
  void layer_norm(device::ConstMatrix x, std::span<const float> weight, std::span<const float> bias,
                  float epsilon, device::Matrix out) override {
    device_->layer_norm(x, weight, bias, epsilon, out);
  }
  void matmul(device::ConstMatrix x, std::span<const device::Product> products) override {
    device_->matmul(x, products);
  }
  void add(device::Matrix x, device::ConstMatrix y) override { device_->add(x, y); }
  void rope(device::Matrix x, std::size_t head_dim, device::ConstMatrix angles,
            device::RopePairs pairs) override {
    device_->rope(x, head_dim, angles, pairs);
  }
  void activate(device::Activation activation, device::ConstMatrix gate, device::ConstMatrix up,
                device::Matrix out) override {
    device_->activate(activation, gate, up, out);
  }
  void soft_cap(device::Matrix x, float cap) override { device_->soft_cap(x, cap); }
  void append_kv(const device::KvPoolView& pool, std::size_t layer, device::ConstMatrix k,
                 device::ConstMatrix v, std::span<const device::KvSlot> slots) override {
    device_->append_kv(pool, layer, k, v, slots);
  }
  void attention(const device::KvPoolView& pool, const device::AttentionParams& params,
                 const device::AttentionPlan& plan, device::ConstMatrix q,
                 device::Matrix out) override {
    if (no_memory) base::throw_error(ErrorCode::kOutOfMemory, "as was asked for");
    device_->attention(pool, params, plan, q, out);
  }
  void gather_rows(device::ConstMatrix x, std::span<const std::uint32_t> rows,
                   device::Matrix out) override {
    device_->gather_rows(x, rows, out);
  }
  void copy_block(const device::KvPoolView& pool, device::BlockId from,
                  device::BlockId to) override {
    device_->copy_block(pool, from, to);
  }

 private:
  std::unique_ptr<device::Device> device_;
  device::DeviceInfo info_;
  bool in_step_ = false;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_FORWARDING_DEVICE_H_
