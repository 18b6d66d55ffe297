#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/text/chat.json: conversations as transformers' apply_chat_template renders them.

    pip install transformers jinja2
    tests/reference/make_chat_fixtures.py --templates FOLDER

FOLDER holds the chat templates as models ship them, one file `NAME.jinja` for each NAME of FORMATS
below; they are not part of this repository (but for those in tests/data/text/templates, which are
taken from there). The fixture holds what they rendered, and for each a sketch: the expressions and
the words that incipit recognises the format by, around words that the model is told.

A conversation that a template refuses, of which it drops the system message, or for which it makes
one from the date, is left out.
"""

import argparse
import json
import pathlib
import re

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "text"

ODD = " \u00a0 a\tb\n\n  <|im_end|></s> \u00fcn\u00ef \u3000\n"
FAHRENHEIT = {"city": "K\u00f6ln \"C\"", "days": 2, "parts": ["a", "b"], "deep": {"x": None, "y": 1.5}}

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city, in \u00b0C",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "its name"}, "days": {"type": "integer"}},
            "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "add", "description": "a + b", "parameters": {"type": "object", "properties": {}}}},
]


def call(identifier, name, arguments):
    return {"id": identifier, "type": "function",
            "function": {"name": name, "arguments": arguments}}


def said(role, text):
    return {"role": role, "content": text}


def calling(*calls):
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def result(identifier, text):
    return {"role": "tool", "tool_call_id": identifier, "content": text}


ONE_CALL = [said("user", "Weather?"), calling(call("abcdefgh1", "get_weather", FAHRENHEIT)),
            result("abcdefgh1", "{\"t\": 20}")]
TWO_CALLS = [said("user", "Both?"), calling(call("abcdefgh1", "get_weather", {"city": "Rom"}),
                                            call("abcdefgh2", "add", {})),
             result("abcdefgh1", "20"), result("abcdefgh2", "\u201e3\u201c\n")]
THOUGHT = "<think>\nSo.\n\nIt is 4.\n</think>\n\nIt is 4."

# Messages, and what is rendered besides them.
PLAIN = [
    ([said("user", "Hello!")], {}),
    ([said("system", "Be brief."), said("user", "What's 2 + 2?")], {}),
    ([said("user", "Hi"), said("assistant", "Hello! How can I help?"),
      said("user", " \u4f60\u597d\n\n")], {}),
    ([said("system", " \nSys  "), said("user", ODD), said("assistant", ODD), said("user", "c"),
      said("assistant", "d"), said("user", ODD)], {}),
    ([said("system", ""), said("user", "a")], {}),
    ([said("user", "Hello!")], {"date_string": "01 Jan 2025"}),
]
WITH_TOOLS = [
    ([said("user", "Weather?")], {"tools": TOOLS}),
    ([said("system", "Be brief."), said("user", "Weather?")], {"tools": TOOLS}),
    (ONE_CALL, {"tools": TOOLS}),
    (ONE_CALL, {}),
    ([said("system", "S")] + ONE_CALL + [said("assistant", "20 degrees."), said("user", "Thanks")],
     {"tools": TOOLS}),
    (TWO_CALLS, {"tools": TOOLS}),
    (TWO_CALLS + [said("assistant", "Done."), said("user", "Both?")], {"tools": TOOLS}),
]
THINKING = [
    ([said("user", "Hi")], {"enable_thinking": False}),
    ([said("user", "Hi")], {"enable_thinking": True}),
    ([said("user", "2 + 2?"), said("assistant", THOUGHT), said("user", "And 3?")], {}),
    ([said("user", "2 + 2?"), dict(calling(call("1", "add", {"a": 2})), content=THOUGHT),
      result("1", "4")], {"tools": TOOLS}),
    ([said("user", "2 + 2?"), dict(calling(call("1", "add", {"a": 2})), content="\nNo thought."),
      result("1", "4"), said("assistant", "4"), result("1", "5")], {"tools": TOOLS}),
    ([said("user", "<tool_response>no</tool_response>"), said("assistant", THOUGHT),
      said("user", "<tool_response>x</tool_response>")], {}),
    ([said("system", "S"), said("user", "q"), said("assistant", "a </think> b </think>\n c"),
      said("user", "r"), said("assistant", THOUGHT), said("user", "s")], {"enable_thinking": False}),
]

V3_SYSTEM = "{% if loop.last and system_message is defined %}"
LLAMA3_TURN = ("'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + "
               "message['content'] | trim + '<|eot_id|>'")
LLAMA3_OPEN = "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
LLAMA31_WORDS = ["Environment: ipython\n", "Cutting Knowledge Date", "Today Date: ",
                 "Given the following functions", "with its proper arguments",
                 "Respond in the format", "Do not use variables"]
# What a template tells its model is its author's wording: the fixture says it in words of its own,
# in sketch and renderings alike, but for what incipit looks for.
OWN_WORDS = {
    ", please respond with a JSON for a function call ": ", write a call of one ",
    "with its proper arguments that best answers the given prompt.":
        "with its proper arguments, if that helps.",
    "{\"name\": function name, \"parameters\": dictionary of argument name and its value}":
        "{\"name\": NAME, \"parameters\": ARGUMENTS}",
}
LLAMA31 = ("{{ bos_token }}{% set date_string = '26 Jul 2024' %}"
           "{% set tools_in_user_message = true %}{{ " + LLAMA3_TURN + " }}" + LLAMA3_OPEN)


def v3(begin, answer):
    return ("{{ bos_token }}" + V3_SYSTEM + "{{ '" + begin + "' + message['content'] + '[/INST]' }}"
            "{{ " + answer + " }}")


# NAME: the format's name, bos_token, eos_token, sketch, words of the template that go with the
# sketch (each a literal that contains the text), further conversations.
FORMATS = {
    "smollm2": ("ChatML", "", "", None, [], []),
    "qwen2": ("ChatML", "", "", None, [], []),
    "qwen2.5": ("Qwen 2.5", "", "", None, [], WITH_TOOLS),
    "qwen3": ("Qwen 3", "", "", None, [], WITH_TOOLS + THINKING),
    "llama-2": ("Llama 2", "<s>", "</s>",
                "{{ '<<SYS>>\\n' + system_message }}{{ bos_token + '[INST] ' + content.strip() + "
                "' [/INST]' }}{{ ' '  + content.strip() + ' ' + eos_token }}", [], []),
    "llama-3": ("Llama 3", "<|begin_of_text|>", "<|eot_id|>",
                "{{ bos_token }}{{ " + LLAMA3_TURN + " }}" + LLAMA3_OPEN, [], []),
    "llama-3.1": ("Llama 3.1", "<|begin_of_text|>", "<|eot_id|>", LLAMA31, LLAMA31_WORDS,
                  WITH_TOOLS),
    "llama-3.3": ("Llama 3.1", "<|begin_of_text|>", "<|eot_id|>", LLAMA31, LLAMA31_WORDS,
                  WITH_TOOLS),
    "mistral-v0": ("Mistral", "<s>", "</s>",
                   "{{ bos_token }}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
                   "{{ message['content'] + eos_token}}", [], []),
    "mistral-v1": ("Mistral", "<s>", "</s>",
                   "{{ bos_token }}{% if loop.first and system_message is defined %}"
                   "{{ ' [INST] ' + message['content'] + ' [/INST]' }}"
                   "{{ ' ' + message['content'] + eos_token }}", [], []),
    "mistral-v3": ("Mistral", "<s>", "</s>", v3("[INST] ", "' ' + message['content']|trim + eos_token"),
                   ["[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]"], WITH_TOOLS),
    "mistral-v3-tekken": ("Mistral", "<s>", "</s>", v3("[INST]", "message['content'] + eos_token"),
                          ["[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]"], WITH_TOOLS),
    "mistral-v7": ("Mistral", "<s>", "</s>",
                   "{{ bos_token }}{{ '[INST] ' + message['content'] + '[/INST]' }}"
                   "{{ '[SYSTEM_PROMPT] ' + message['content'] + '[/SYSTEM_PROMPT]' }}"
                   "{{ ' ' + message['content'] + eos_token }}", [], []),
    "mistral-v11": ("Mistral", "<s>", "</s>",
                    "{{ bos_token }}{% set default_system_message = today %}"
                    "{{ '[SYSTEM_PROMPT]' }}{{ '[/SYSTEM_PROMPT]' }}{{ '[INST]' }}{{ '[/INST]' }}"
                    "{{ message['content'] + eos_token }}",
                    ["[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[TOOL_RESULTS]",
                     "[TOOL_CONTENT]"], WITH_TOOLS),
    "gemma-2": ("Gemma", "<bos>", "<eos>",
                "{{ bos_token }}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + "
                "'<end_of_turn>\\n' }}{{ '<start_of_turn>model\\n' }}", [], []),
    "gemma-3": ("Gemma", "<bos>", "<eos>",
                "{{ bos_token }}{{ '<start_of_turn>' + role + '\\n' + first }}"
                "{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}"
                "{{ '<start_of_turn>model\\n' }}", [], []),
    "phi-3-mini": ("Phi-3", "<s>", "<|endoftext|>",
                   "{{ bos_token }}{{'<|user|>' + '\\n' + message['content'] + '<|end|>' + '\\n' "
                   "+ '<|assistant|>' + '\\n'}}", [], []),
    "phi-3-small": ("Phi-3", "<s>", "<|endoftext|>",
                    "{{ bos_token }}{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + "
                    "'<|end|>\\n' }}{{ '<|assistant|>\\n' }}", [], []),
    "phi-3.5": ("Phi-3", "", "<|endoftext|>",
                "{% if message['role'] == 'system' and message['content'] %}"
                "{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{{ '<|assistant|>\\n' }}",
                [], []),
    "zephyr": ("Zephyr", "<s>", "</s>",
               "{{ '<|user|>\\n' + message['content'] + eos_token }}"
               "{{ '<|assistant|>\\n'  + message['content'] + eos_token }}", [], []),
}


def literals(template):
    """The string literals of a template's code, as Jinja's own lexer finds them."""
    for _, kind, value in jinja2.Environment().lex(template):
        if kind == "string":
            yield re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), value[1:-1])


def sketch_of(template, sketch, words):
    found = list(literals(template))
    for word in words:
        literal = in_own_words(next(text for text in found if word in text))
        quoted = literal.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        sketch += "{{ '" + quoted + "' }}"
    return sketch


def in_own_words(text):
    for theirs, ours in OWN_WORDS.items():
        text = text.replace(theirs, ours)
    return text


def render(template, bos, eos, messages, options):
    """None where the template refuses."""
    try:
        texts, _ = render_jinja_template(
            [messages], chat_template=template, add_generation_prompt=True, bos_token=bos,
            eos_token=eos, **{"date_string": "26 Jul 2024", **options})
    except (jinja2.TemplateError, TypeError):
        return None
    text = in_own_words(texts[0])
    return text if all(m["content"].strip() in text for m in messages if m["role"] == "system") else None


def stored(messages, options):
    """As the test reads them: JSON of tools and arguments as text."""
    dump = lambda value: json.dumps(value, ensure_ascii=False)
    plain = []
    for message in messages:
        message = dict(message)
        if "tool_calls" in message:
            message["tool_calls"] = [{"id": c["id"], "name": c["function"]["name"],
                                      "arguments": dump(c["function"]["arguments"])}
                                     for c in message["tool_calls"]]
        plain.append(message)
    out = {"messages": plain}
    if "tools" in options:
        out["tools"] = [dump(tool) for tool in options["tools"]]
    if "date_string" in options:
        out["date"] = options["date_string"]
    if "enable_thinking" in options:
        out["thinking"] = options["enable_thinking"]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--templates", type=pathlib.Path, required=True, metavar="FOLDER")
    folder = parser.parse_args().templates
    conversations = PLAIN + WITH_TOOLS + THINKING
    formats = []
    for name, (shown, bos, eos, sketch, words, further) in FORMATS.items():
        own = DATA / "templates" / f"{name}.jinja"
        template = (own if own.exists() else folder / f"{name}.jinja").read_text(encoding="utf-8")
        texts = {}
        for index, (messages, options) in enumerate(conversations):
            if "default_system_message" in template and messages[0]["role"] != "system":
                continue
            if index < len(PLAIN) or any(c[0] is messages and c[1] is options for c in further):
                text = render(template, bos, eos, messages, options)
                if text is not None:
                    texts[index] = text
        entry = {"name": name, "format": shown, "bos": bos, "eos": eos, "texts": texts}
        if sketch is not None:
            entry["sketch"] = sketch_of(template, sketch, words)
        formats.append(entry)
        print(f"{name}: {len(texts)} conversations")
    content = {"conversations": [stored(*c) for c in conversations], "formats": formats}
    with (DATA / "chat.json").open("w", encoding="utf-8", newline="\n") as file:
        json.dump(content, file, ensure_ascii=False, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
