// SPDX-License-Identifier: Apache-2.0
#include "retrieve/term_table.h"

#include "support/catch.h"

using incipit::retrieve::TermTable;

TEST_CASE("terms are numbered in the order of their first appearance") {
  TermTable table;
  CHECK(table.find(5) == TermTable::kNone);
  CHECK(table.find_or_add(5) == 0);
  CHECK(table.find_or_add(0) == 1);
  CHECK(table.find_or_add(5) == 0);
  CHECK(table.find(0) == 1);
  CHECK(table.find(6) == TermTable::kNone);
  CHECK(table.size() == 2);
}

TEST_CASE("numbers stay as the table grows, terms that collide included") {
  TermTable table;
  bool good = true;
  for (std::uint32_t i = 0; i < 5000; ++i) good = good && table.find_or_add(i * 4096ull) == i;
  for (std::uint32_t i = 0; i < 5000; ++i) good = good && table.find(i * 4096ull) == i;
  CHECK(good);
  CHECK(table.size() == 5000);
}
