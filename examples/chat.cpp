// SPDX-License-Identifier: Apache-2.0
#include <incipit/conversation.h>

#include <iostream>
#include <string>
#include <vector>

#include "support.h"

// A chat in the terminal that shows what each turn found in the cache.

namespace {

void say(incipit::Conversation& conversation, const std::string& message) {
  incipit::GenerateParams params;
  params.on_text = [](std::string_view piece) {
    std::cout << piece << std::flush;
    return true;
  };
  const incipit::GenerateResult result = conversation.send(message, params);
  std::cout << "\n[" << result.reused_tokens << " of " << result.prompt_ids.size()
            << " prompt tokens reused, first token after "
            << examples::milliseconds(result.time_to_first_token) << " ms]\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Chats with a model. Without --say, reads one message per line.", "chat");
  incipit::EngineOptions options;
  std::string model, system;
  std::vector<std::string> messages;
  app.add_option("--model", model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--system", system, "System message; default: the model's own");
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use");
  app.add_option("--say", messages, "A message; give it several times for several turns")
      ->allow_extra_args(false);

  return examples::run_main(app, argc, argv, [&] {
    options.model = model;
    incipit::Engine engine(options);
    incipit::Conversation conversation(engine, system);
    for (const std::string& message : messages) {
      std::cout << "> " << message << "\n";
      say(conversation, message);
    }
    if (!messages.empty()) return 0;
    std::string line;
    while (std::cout << "> " << std::flush, std::getline(std::cin, line)) {
      if (!line.empty()) say(conversation, line);
    }
    std::cout << "\n";
    return 0;
  });
}
