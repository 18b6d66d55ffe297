// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_CATCH_H_
#define INCIPIT_TESTS_SUPPORT_CATCH_H_

// Catch2 2.13 (Debian 12) and 3.x name their header differently.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif  // INCIPIT_TESTS_SUPPORT_CATCH_H_
