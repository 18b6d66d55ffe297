// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CONSUMER_ADD_SUBDIRECTORY_GREETER_H_
#define INCIPIT_TESTS_CONSUMER_ADD_SUBDIRECTORY_GREETER_H_

#include <incipit/error.h>

namespace host {

incipit::ErrorCode open_model(const char* path);

}  // namespace host

#endif  // INCIPIT_TESTS_CONSUMER_ADD_SUBDIRECTORY_GREETER_H_
