// SPDX-License-Identifier: Apache-2.0
#include <incipit/compressor.h>
#include <incipit/engine.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "support.h"

// A chat in the terminal that may go on for ever: a Compressor keeps its prompts within a budget
// without disturbing their front, so that each turn finds nearly all of its prompt in the cache.

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  incipit::EngineOptions engine = {};
  std::string system = "You are a helpful assistant.", json;
  std::size_t budget = 0, reply_tokens = 256;
  bool summarize = false;
  std::vector<std::string> messages;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--model", options.engine.model, "GGUF file or Hugging Face directory")
      ->required();
  app.add_option("--system", options.system, "System message")->capture_default_str();
  app.add_option("--budget", options.budget,
                 "Tokens that a prompt may take; default: three quarters of the model's context");
  app.add_option("--max-tokens", options.reply_tokens, "Of a reply")->capture_default_str();
  app.add_flag("--summarize", options.summarize,
               "Old turns become summaries by the model, not their most telling sentences");
  app.add_option("--threads", options.engine.threads, "0: the CPUs that this process may use");
  app.add_option("--say", options.messages, "A message; give it several times for several turns")
      ->allow_extra_args(false);
  app.add_option("--json", options.json, "Write what each turn cost here; -: stdout");
}

class Chat {
 public:
  Chat(incipit::Engine& engine, const Options& options)
      : engine_(engine),
        reply_tokens_(options.reply_tokens),
        out_(examples::console(options.json)),
        compressor_(compressor_options(options), engine.token_counter()) {
    compressor_.add({.role = incipit::Role::kSystem, .text = options.system});
  }

  void say(const std::string& message) {
    compressor_.add({.role = incipit::Role::kUser, .text = message});
    const incipit::CompressedPrompt prompt = compressor_.apply();
    incipit::GenerateParams params;
    params.max_tokens = reply_tokens_;
    params.on_text = [this](std::string_view piece) {
      out_ << piece << std::flush;
      return true;
    };
    const incipit::GenerateResult reply = engine_.generate_with_cache(prompt.messages, params);
    compressor_.add({.role = incipit::Role::kAssistant, .text = reply.text});
    report(prompt, reply);
  }

  const Json& turns() const { return turns_; }

 private:
  incipit::CompressorOptions compressor_options(const Options& options) {
    incipit::CompressorOptions compressor;
    // What is left has room for the reply, and for a summary behind the prompt.
    compressor.token_budget = options.budget > 0 ? options.budget : engine_.model().context / 4 * 3;
    if (options.summarize) compressor.summarizer = counted(incipit::engine_summarizer(engine_));
    return compressor;
  }

  /// The summarizer, which also tells how much of its prompts was in the cache.
  incipit::Summarizer counted(incipit::Summarizer summarizer) {
    return [this, summarizer](const incipit::SummaryRequest& request) {
      const incipit::EngineStats before = engine_.stats();
      std::string summary = summarizer(request);
      const incipit::EngineStats after = engine_.stats();
      summaries_.push_back({{"prompt_tokens", after.prompt_tokens - before.prompt_tokens},
                            {"reused_tokens", after.reused_tokens - before.reused_tokens},
                            {"text", summary}});
      return summary;
    };
  }

  void report(const incipit::CompressedPrompt& prompt, const incipit::GenerateResult& reply) {
    const auto is_shorter = [](const incipit::MessageReport& message) {
      return message.fate == incipit::MessageFate::kSummarized ||
             message.fate == incipit::MessageFate::kDropped;
    };
    const auto compacted =
        prompt.compacted ? std::count_if(prompt.report.begin(), prompt.report.end(), is_shorter)
                         : 0;
    const std::size_t tokens = reply.prompt_ids.size();
    Json turn = {{"reply", reply.text},
                 {"conversation_tokens", prompt.tokens_before},
                 {"prompt_tokens", tokens},
                 {"reused_tokens", reply.reused_tokens},
                 {"prefilled_tokens", tokens - reply.reused_tokens},
                 {"time_to_first_token_ms", examples::milliseconds(reply.time_to_first_token)},
                 {"compacted_messages", compacted},
                 {"reclaimed_tokens", prompt.reclaimed_tokens},
                 {"summaries", summaries_}};
    out_ << "\n[" << prompt.tokens_before << " tokens of conversation in " << tokens
         << " of prompt, " << reply.reused_tokens << " of them reused, first token after "
         << turn["time_to_first_token_ms"].get<double>() << " ms]\n";
    if (compacted > 0) {
      out_ << "[compacted " << compacted << " messages, which freed " << prompt.reclaimed_tokens
           << " tokens]\n";
    }
    for (const Json& summary : summaries_) {
      out_ << "[the model's summary, " << summary["reused_tokens"] << " of its "
           << summary["prompt_tokens"] << " prompt tokens reused: " << summary["text"] << "]\n";
    }
    summaries_ = Json::array();
    turns_.push_back(std::move(turn));
  }

  incipit::Engine& engine_;
  const std::size_t reply_tokens_;
  std::ostream& out_;
  Json summaries_ = Json::array();  // of this turn
  Json turns_ = Json::array();
  incipit::Compressor compressor_;
};

int run(const Options& options) {
  incipit::Engine engine(options.engine);
  Chat chat(engine, options);
  std::ostream& out = examples::console(options.json);
  for (const std::string& message : options.messages) {
    out << "> " << message << "\n";
    chat.say(message);
  }
  std::string line;
  while (options.messages.empty() && out << "> " << std::flush && std::getline(std::cin, line)) {
    if (!line.empty()) chat.say(line);
  }
  if (!options.json.empty()) examples::write_json(options.json, {{"turns", chat.turns()}}, 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Chats with a model. Without --say, reads one message per line.", "chat");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&options] { return run(options); });
}
