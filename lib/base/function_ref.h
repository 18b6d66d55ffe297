// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_FUNCTION_REF_H_
#define INCIPIT_BASE_FUNCTION_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

namespace incipit::base {

/// A callable that somebody else owns, for parameters that are only called before the function
/// returns: unlike std::function it never allocates.
template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable,
            class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                                     std::is_invocable_r_v<Result, Callable&, Arguments...>>>
  FunctionRef(Callable&& callable) noexcept  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(
              std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_FUNCTION_REF_H_
