// SPDX-License-Identifier: Apache-2.0
// Loads a prompt's state into llama.cpp, each time into a new context, and says what each load
// took: JSON as of cache_restore. The state's file is made by the first call.
//
//     llama_state MODEL STATE_FILE THREADS REPEAT
#include <llama.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int kPromptTokens = 4096;
constexpr int kBatch = 2048;

using Context = std::unique_ptr<llama_context, decltype(&llama_free)>;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "llama_state: %s\n", what);
  std::exit(1);
}

double cpu_ms() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

Context make_context(llama_model* model, int threads) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = kPromptTokens + 512;
  params.n_batch = kBatch;
  params.n_threads = threads;
  params.n_threads_batch = threads;
  Context context(llama_init_from_model(model, params), llama_free);
  if (!context) fail("no context");
  return context;
}

void write_state(llama_model* model, int threads, const std::string& file) {
  std::vector<llama_token> tokens(kPromptTokens);
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (int i = 0; i < kPromptTokens; ++i) tokens[i] = i * 7919 % vocabulary;
  const Context context = make_context(model, threads);
  for (int i = 0; i < kPromptTokens; i += kBatch) {
    if (llama_decode(context.get(), llama_batch_get_one(tokens.data() + i, kBatch)) != 0) {
      fail("cannot compute");
    }
  }
  if (llama_state_seq_save_file(context.get(), file.c_str(), 0, tokens.data(), tokens.size()) ==
      0) {
    fail("cannot write the state");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("give MODEL STATE_FILE THREADS REPEAT");
  const std::string file = argv[2];
  const int threads = std::atoi(argv[3]), repeat = std::atoi(argv[4]);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* const model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) fail("no model");
  if (!std::filesystem::exists(file)) write_state(model, threads, file);

  std::string load, cpu;
  for (int i = 0; i < repeat; ++i) {
    const Context context = make_context(model, threads);
    std::vector<llama_token> tokens(kPromptTokens);
    std::size_t count = 0;
    const double cpu_before = cpu_ms();
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t bytes = llama_state_seq_load_file(context.get(), file.c_str(), 0,
                                                        tokens.data(), tokens.size(), &count);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    const double cpu_spent = cpu_ms() - cpu_before;
    if (bytes == 0 || count != tokens.size()) fail("cannot read the state");
    load += (i == 0 ? "" : ", ") + std::to_string(spent.count());
    cpu += (i == 0 ? "" : ", ") + std::to_string(cpu_spent);
  }
  const auto bytes = static_cast<unsigned long long>(std::filesystem::file_size(file));
  std::printf("{\"bytes\": %llu, \"load_ms\": [%s], \"cpu_ms\": [%s]}\n", bytes, load.c_str(),
              cpu.c_str());
  llama_model_free(model);
}
