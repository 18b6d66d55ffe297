// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_FORMATS_H_
#define INCIPIT_TEXT_CHAT_FORMATS_H_

#include <memory>

#include "text/chat/template_text.h"
#include "text/chat_format.h"

namespace incipit::text {

// Each knows one family of formats; null: the template is of another one.
std::unique_ptr<const ChatFormat> recognize_chatml(const TemplateText& text,
                                                   const ChatTemplate& chat);
std::unique_ptr<const ChatFormat> recognize_llama3(const TemplateText& text,
                                                   const ChatTemplate& chat);
/// Llama 2 and Mistral.
std::unique_ptr<const ChatFormat> recognize_instruct(const TemplateText& text,
                                                     const ChatTemplate& chat);
/// Gemma, Phi-3 and Zephyr.
std::unique_ptr<const ChatFormat> recognize_turns(const TemplateText& text,
                                                  const ChatTemplate& chat);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_FORMATS_H_
