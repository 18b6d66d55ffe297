// SPDX-License-Identifier: Apache-2.0
#include "cuda/gemm/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "cuda/runtime.h"
#include "cuda/runtime/current_device.h"

namespace incipit::cuda {
namespace {

/// What is used of the library.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  decltype(&cublasLtGetStatusName) name_of = nullptr;
};

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// False where the machine does not have it. Once loaded it stays: what it has started on a device
/// may need its code until the process ends.
bool load_library(Library& all) {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return false;
  const bool complete = find(library, all.create, "cublasLtCreate") &&
                        find(library, all.destroy, "cublasLtDestroy") &&
                        find(library, all.make_operation, "cublasLtMatmulDescCreate") &&
                        find(library, all.set_operation, "cublasLtMatmulDescSetAttribute") &&
                        find(library, all.destroy_operation, "cublasLtMatmulDescDestroy") &&
                        find(library, all.make_layout, "cublasLtMatrixLayoutCreate") &&
                        find(library, all.destroy_layout, "cublasLtMatrixLayoutDestroy") &&
                        find(library, all.make_preference, "cublasLtMatmulPreferenceCreate") &&
                        find(library, all.set_preference, "cublasLtMatmulPreferenceSetAttribute") &&
                        find(library, all.destroy_preference, "cublasLtMatmulPreferenceDestroy") &&
                        find(library, all.choose, "cublasLtMatmulAlgoGetHeuristic") &&
                        find(library, all.multiply, "cublasLtMatmul") &&
                        find(library, all.name_of, "cublasLtGetStatusName");
  static_cast<void>(dlclose(library));
  return complete;
}

/// One of the library's objects, with what ends it.
template <class T>
class Object {
 public:
  using Destroy = cublasStatus_t (*)(T);

  explicit Object(Destroy destroy) : destroy_(destroy) {}
  ~Object() {
    if (object_ != nullptr) static_cast<void>(destroy_(object_));
  }
  Object(Object&& other) noexcept : object_(other.object_), destroy_(other.destroy_) {
    other.object_ = nullptr;
  }
  Object& operator=(Object&&) = delete;

  T* out() noexcept { return &object_; }
  T get() const noexcept { return object_; }

 private:
  T object_ = nullptr;
  const Destroy destroy_;
};

/// How products of one shape are done.
struct Recipe {
  explicit Recipe(const Library& library)
      : operation(library.destroy_operation),
        weight(library.destroy_layout),
        x(library.destroy_layout),
        out(library.destroy_layout) {}

  Object<cublasLtMatmulDesc_t> operation;
  Object<cublasLtMatrixLayout_t> weight, x, out;
  cublasLtMatmulAlgo_t algorithm = {};
  bool found = false;  // false: the library has none
};

class CublasLt final : public Gemm {
 public:
  CublasLt(const Library& library, Object<cublasLtHandle_t> handle, int device,
           unsigned architecture)
      : library_(library),
        device_(device),
        architecture_(architecture),
        handle_(std::move(handle)) {}

  /// As NVIDIA recommends for each generation.
  std::size_t workspace_bytes() const noexcept override {
    return std::size_t{architecture_ >= 90 ? 32u : 4u} << 20;
  }
  bool multiply(StreamRef stream, const GemmParams& params,
                std::span<std::byte> workspace) override;

 private:
  using Shape = std::tuple<bool, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t,
                           std::size_t>;
  // Prompts end in chunks of any number of rows: what was chosen is not kept for ever.
  static constexpr std::size_t kRecipes = 512;
  // Of all pointers; a shape's rows may begin anywhere in a matrix.
  static constexpr std::uint32_t kAlignment = 16;

  const Recipe& recipe(const GemmParams& params);
  Recipe make_recipe(const GemmParams& params) const;
  void check(cublasStatus_t status, const char* doing) const;

  const Library library_;
  const int device_;
  const unsigned architecture_;
  Object<cublasLtHandle_t> handle_;
  std::map<Shape, Recipe> recipes_;
};

/// Throws for all but CUBLAS_STATUS_SUCCESS.
void CublasLt::check(cublasStatus_t status, const char* doing) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check_last_error("multiply matrices");  // says more, if it is the device's
  const std::string what =
      std::string("cuBLASLt could not ") + doing + " the GPU (" + library_.name_of(status) + ")";
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      base::throw_error(ErrorCode::kOutOfMemory,
                        what + "; use a smaller EngineOptions::kv_pool_bytes");
    case CUBLAS_STATUS_EXECUTION_FAILED:
    case CUBLAS_STATUS_MAPPING_ERROR:
      base::throw_error(ErrorCode::kDeviceLost, what + "; make a new Engine");
    default:
      base::throw_error(ErrorCode::kInternal, what);
  }
}

/// The library counts by columns: row-major out = x weight^T is out^T = weight x^T to it.
Recipe CublasLt::make_recipe(const GemmParams& params) const {
  Recipe recipe(library_);
  const cudaDataType_t type = params.bf16 ? CUDA_R_16BF : CUDA_R_16F;
  const auto stride = [](std::size_t elements) { return static_cast<std::int64_t>(elements); };
  check(library_.make_operation(recipe.operation.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "describe a product on");
  const cublasOperation_t turned = CUBLAS_OP_T;
  check(library_.set_operation(recipe.operation.get(), CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                               sizeof turned),
        "describe a product on");
  check(library_.make_layout(recipe.weight.out(), type, params.depth, params.outputs,
                             stride(params.weight_stride)),
        "describe a matrix on");
  check(library_.make_layout(recipe.x.out(), type, params.depth, params.rows,
                             stride(params.x_stride)),
        "describe a matrix on");
  check(library_.make_layout(recipe.out.out(), CUDA_R_32F, params.outputs, params.rows,
                             stride(params.out_stride)),
        "describe a matrix on");

  Object<cublasLtMatmulPreference_t> preference(library_.destroy_preference);
  check(library_.make_preference(preference.out()), "choose a kernel on");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(library_.set_preference(preference.get(), attribute, &value, sizeof value),
          "choose a kernel on");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes()});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(attribute, kAlignment);
  }
  cublasLtMatmulHeuristicResult_t best = {};
  int count = 0;
  const cublasStatus_t status =
      library_.choose(handle_.get(), recipe.operation.get(), recipe.weight.get(), recipe.x.get(),
                      recipe.out.get(), recipe.out.get(), preference.get(), 1, &best, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) return recipe;
  check(status, "choose a kernel on");
  recipe.found = count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  recipe.algorithm = best.algo;
  return recipe;
}

const Recipe& CublasLt::recipe(const GemmParams& params) {
  const Shape shape = {params.bf16,          params.rows,     params.outputs,   params.depth,
                       params.weight_stride, params.x_stride, params.out_stride};
  const auto known = recipes_.find(shape);
  if (known != recipes_.end()) return known->second;
  if (recipes_.size() >= kRecipes) recipes_.clear();
  return recipes_.emplace(shape, make_recipe(params)).first->second;
}

bool CublasLt::multiply(StreamRef stream, const GemmParams& params,
                        std::span<std::byte> workspace) {
  INCIPIT_CHECK(workspace.size() >= workspace_bytes());
  for (const void* const pointer :
       {params.x, params.weight, static_cast<const void*>(params.out)}) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % kAlignment != 0) return false;
  }
  const CurrentDevice current(device_);
  const Recipe& how = recipe(params);
  if (!how.found) return false;
  const float one = 1.0f, zero = 0.0f;
  const cublasStatus_t status = library_.multiply(
      handle_.get(), how.operation.get(), &one, params.weight, how.weight.get(), params.x,
      how.x.get(), &zero, params.out, how.out.get(), params.out, how.out.get(), &how.algorithm,
      workspace.data(), workspace_bytes(), static_cast<cudaStream_t>(stream.native));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, "multiply matrices on");
  return true;
}

}  // namespace

std::unique_ptr<Gemm> open_cublaslt(int device, unsigned architecture) {
  Library library;
  if (!load_library(library)) return nullptr;
  const CurrentDevice current(device);
  Object<cublasLtHandle_t> handle(library.destroy);
  if (library.create(handle.out()) != CUBLAS_STATUS_SUCCESS) return nullptr;
  return std::make_unique<CublasLt>(library, std::move(handle), device, architecture);
}

}  // namespace incipit::cuda
