// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/hash.h"
#include "examples/support.h"

namespace bench {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTokens = 1 << 24;  // of a request

TokenId to_token(std::uint64_t hash) { return static_cast<TokenId>(hash >> 33); }

/// Any 31 bits that depend on a block's id and a place in it.
TokenId hashed_token(std::uint64_t id, std::size_t place) {
  std::uint64_t x = (id * kHashedTokens + place + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return to_token(x ^ (x >> 32));
}

/// Without rounding and wrapping.
std::uint64_t count_of(const Json& json) {
  if (!json.is_number_unsigned()) throw std::runtime_error(json.dump() + " is no count");
  return json.get<std::uint64_t>();
}

Request parse(const std::string& line) {
  const Json json = Json::parse(line);
  Request request;
  request.timestamp = json.at("timestamp").get<double>();
  if (!json.contains("hash_ids")) {
    request.prompt = pseudo_tokens(json.at("input").get_ref<const std::string&>());
    request.output = pseudo_tokens(json.at("output").get_ref<const std::string&>());
    request.prompt_tokens = request.prompt.size();
    return request;
  }
  for (const Json& id : json["hash_ids"]) request.hash_ids.push_back(count_of(id));
  request.prompt_tokens = count_of(json.at("input_length"));
  if (request.prompt_tokens > kMostTokens ||
      request.hash_ids.size() != (request.prompt_tokens + kHashedTokens - 1) / kHashedTokens) {
    throw std::runtime_error("input_length and the number of hash_ids do not fit");
  }
  return request;
}

enum class Kind { kLetter, kDigit, kSpace, kOther };

bool is_between(char c, char first, char last) { return first <= c && c <= last; }

Kind kind_of(char c) {
  if (is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || c == '_') return Kind::kLetter;
  if (static_cast<unsigned char>(c) >= 0x80) return Kind::kLetter;  // of a character in UTF-8
  if (is_between(c, '0', '9')) return Kind::kDigit;
  return static_cast<unsigned char>(c) <= ' ' ? Kind::kSpace : Kind::kOther;
}

/// Where the piece that starts at `begin` ends.
std::size_t end_of_piece(std::string_view text, std::size_t begin) {
  constexpr std::size_t kLongest[] = {std::numeric_limits<std::size_t>::max(), 3,
                                      std::numeric_limits<std::size_t>::max(), 1};
  std::size_t end = begin;
  if (text[end] == ' ' && end + 1 < text.size() && kind_of(text[end + 1]) == Kind::kLetter) ++end;
  const Kind kind = kind_of(text[end]);
  const std::size_t most = kLongest[static_cast<std::size_t>(kind)];
  for (std::size_t count = 0; count < most; ++count) {
    if (end == text.size() || kind_of(text[end]) != kind) break;
    // The last space of several belongs to the word behind them.
    const bool before_word = kind == Kind::kSpace && count > 0 && text[end] == ' ' &&
                             end + 1 < text.size() && kind_of(text[end + 1]) == Kind::kLetter;
    if (before_word) break;
    ++end;
  }
  return end;
}

}  // namespace

std::vector<TokenId> pseudo_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = end_of_piece(text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    tokens.push_back(to_token(incipit::base::xxh3_64(incipit::base::as_bytes(piece))));
    begin = end;
  }
  return tokens;
}

std::vector<Request> read_traces(const std::vector<std::string>& files) {
  std::vector<Request> requests;
  for (const std::string& file : files) {
    std::istringstream lines(examples::read_file(file));
    std::string line;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      try {
        requests.push_back(parse(line));
      } catch (const std::exception& error) {
        throw std::runtime_error(file + ":" + std::to_string(number) + ": " + error.what());
      }
    }
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const Request& a, const Request& b) { return a.timestamp < b.timestamp; });
  return requests;
}

std::size_t expand(const Request& request, std::vector<TokenId>& tokens) {
  tokens.assign(request.prompt.begin(), request.prompt.end());
  tokens.insert(tokens.end(), request.output.begin(), request.output.end());
  if (!request.hash_ids.empty()) {
    tokens.resize(request.prompt_tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = hashed_token(request.hash_ids[i / kHashedTokens], i % kHashedTokens);
    }
  }
  return request.prompt_tokens;
}

}  // namespace bench
