// SPDX-License-Identifier: Apache-2.0
// A host that loads the library with a plugin, uses it from a thread that lives longer than the
// library, and unloads both, again and again: no thread and no mapping may be left.
//
//     unload_host PLUGIN
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <latch>
#include <string_view>
#include <thread>

#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "unload/plugin.h"

namespace {

constexpr int kRounds = 20;

int fail(int round, const char* what) {
  std::fprintf(stderr, "round %d: %s\n", round, what);
  return 1;
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Whether no more threads than these are left. A thread that was joined may still be listed.
bool are_left(std::ptrdiff_t wanted) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (threads() == wanted) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Whether an object whose path contains `name` is mapped.
bool is_mapped(std::string_view name) {
  struct Search {
    std::string_view name;
    bool found = false;
  } search{name};
  const auto look = [](dl_phdr_info* object, std::size_t, void* data) {
    Search& wanted = *static_cast<Search*>(data);
    wanted.found |= std::string_view(object->dlpi_name).find(wanted.name) != std::string_view::npos;
    return 0;
  };
  dl_iterate_phdr(look, &search);
  return search.found;
}

/// One life of the plugin. 0: all went well.
int run_round(int round, const char* path, const char* model, const char* folder) {
  void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return fail(round, dlerror());
  const auto run = reinterpret_cast<RunPlugin>(dlsym(plugin, "run_plugin"));
  if (run == nullptr) return fail(round, "the plugin lacks its function");
  if (!is_mapped("libincipit.so")) return fail(round, "the library is not a shared one");

  const bool keeps = round % 2 == 0;
  int result = 0;
  std::latch used(1), unloaded(1);
  std::thread user([&] {
    result = run(model, folder, keeps);
    used.count_down();
    unloaded.wait();  // what the thread keeps of its own is destroyed behind this
  });
  used.wait();
  bool joined = keeps || are_left(2);
  const bool closed = dlclose(plugin) == 0;
  joined = joined && are_left(2);
  const bool gone = !is_mapped("libincipit.so") && !is_mapped("unload_plugin");
  unloaded.count_down();
  user.join();
  if (result != 0) return fail(round, "the engine did not do what it should");
  if (!joined) return fail(round, "threads are left");
  return closed && gone ? 0 : fail(round, "the library is still mapped");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fail(0, "give the plugin's path");
  const incipit::test::TemporaryDirectory directory;
  const auto model = directory.path() / "model.gguf";
  const auto folder = directory.path() / "cache";
  incipit::test::make_tiny_model({}).write_gguf(model);
  for (int round = 1; round <= kRounds; ++round) {
    if (const int result = run_round(round, argv[1], model.c_str(), folder.c_str())) return result;
  }
  return 0;
}
