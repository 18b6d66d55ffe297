// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CONSUMER_UNLOAD_PLUGIN_H_
#define INCIPIT_TESTS_CONSUMER_UNLOAD_PLUGIN_H_

// What the host finds in the plugin. 0: all went well. `keeps`: an engine stays until the plugin is
// unloaded.
extern "C" __attribute__((visibility("default"))) int run_plugin(const char* model,
                                                                 const char* folder,
                                                                 bool keeps) noexcept;
using RunPlugin = decltype(&run_plugin);

#endif  // INCIPIT_TESTS_CONSUMER_UNLOAD_PLUGIN_H_
