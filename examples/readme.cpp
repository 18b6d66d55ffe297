// SPDX-License-Identifier: Apache-2.0
#include <incipit/engine.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return 2;  // readme MODEL.gguf TEXT
  std::ifstream file(argv[2]);
  const std::string examples(std::istreambuf_iterator<char>(file), {});
  incipit::Engine engine({.model = argv[1]});
  for (std::string order : {"Please send 12 lamps to Anna in Oslo; they are needed on Friday.",
                            "Oscar from Rome would like 7 chairs by Monday."}) {
    const auto answer = engine.generate_with_cache(
        examples, "\nOrder: " + order + "\nResult:", {.max_tokens = 32, .stop_strings = {"\n"}});
    std::cout << answer.text << "   [" << answer.reused_tokens << " of " << answer.prompt_ids.size()
              << " prompt tokens reused]\n";
  }
}
