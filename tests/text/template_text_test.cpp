// SPDX-License-Identifier: Apache-2.0
#include "text/chat/template_text.h"

#include "support/catch.h"

namespace incipit::text {
namespace {

TEST_CASE("code loses its freedoms of writing, literals lose nothing") {
  const TemplateText text(
      "a {# 'no' {{ #}{%- if message[\"role\"] == 'x y' %} 'outside' {{ \"it's\\n\" + "
      "message['content']|trim}}");
  CHECK(text.code() == "a{%-ifmessage.role=='x y'%}'outside'{{'it's\\n'+message.content|trim}}");
  CHECK(text.literals().size() == 4);  // with the names of the subscripts
  CHECK(text.literal("x y") == "x y");
  CHECK(text.literal("it") == "it's\n");
  CHECK(text.literal("no").empty());
  CHECK(text.has("=='x y'%}"));
  CHECK_FALSE(text.has("no"));
}

TEST_CASE("escapes in literals are read") {
  const TemplateText text(R"({{ 'a\\b\'c\"d\n\t\r\x' }})");
  REQUIRE(text.literals().size() == 1);
  CHECK(text.literals()[0] == "a\\b'c\"d\n\t\r\\x");
}

TEST_CASE("templates that break off are read to their end") {
  for (const char* const broken :
       {"{{", "{{ '", "{{ 'a", "{{ 'a\\", "{#", "{# a", "{", "{{ \"'", "}}"}) {
    CAPTURE(broken);
    const TemplateText text(broken);
    CHECK(text.literals().size() <= 1);
  }
  CHECK(TemplateText("{{ 'a").literal("a") == "a");
}

TEST_CASE("a tag's end within a literal is none") {
  const TemplateText text("{{ '}}' + 'b' }} 'c'");
  CHECK(text.literals() == std::vector<std::string>{"}}", "b"});
}

}  // namespace
}  // namespace incipit::text
