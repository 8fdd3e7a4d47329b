// Result<T>: every fallible call of the library returns one. No exceptions, no exit().
// Next: tensor.h (views), ops.h (the operations).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace dsattn {

/// What kind of rule a call broke. The message says which values were given and which are allowed.
enum class ErrorCode {
  kInvalidShape,       ///< a rank or a dimension differs from what the operation expects
  kInvalidDType,       ///< an element type the operation does not take
  kInvalidStride,      ///< a stride or alignment the backend cannot address
  kInvalidDevice,      ///< tensors on different devices, or on a device the backend cannot reach
  kInvalidValue,       ///< a parameter or a host-readable list (cu_seqlens) outside its range
  kMissingTensor,      ///< a required tensor is absent
  kWorkspaceTooSmall,  ///< the workspace is absent, misaligned or smaller than the query said
  kUnsupported,        ///< legal by the contract, not offered by this backend
  kUnavailable,        ///< the backend cannot run on this machine
  kCancelled,          ///< the progress callback returned false; outputs may be partly written
  kIo,                 ///< a file cannot be read or written, or its content is malformed
  kInternal,           ///< a fault of ours
};

/// The name of a code, e.g. "invalid shape".
std::string_view to_string(ErrorCode code);

/// A failed call: the kind, and a message naming what was asked, what is allowed, and both values.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning a failure from a function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace dsattn
