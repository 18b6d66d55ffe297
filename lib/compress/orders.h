// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_ORDERS_H_
#define INCIPIT_COMPRESS_ORDERS_H_

#include <string_view>

namespace incipit::compress {

/// Whether a sentence of a user orders something that binds from then on: "Never push to main.",
/// "From now on answer in French.", 不要删除日志。 Only sentences that begin like an order, after a
/// "please" or a name of a topic at most, count: what merely mentions a prohibition does not.
bool is_order(std::string_view sentence);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_ORDERS_H_
