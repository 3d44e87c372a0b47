// Calls a template for the C type that a pwx_type names.
#pragma once

#include <complex>

#include "peerway/xacc/runtime.h"
#include "xacc/runtime/base/failure.h"

namespace pwx {

/// Calls `with(Value{})` with a value of the type. Throws Failure for an unknown type.
template <typename With>
auto for_type(pwx_type type, With&& with) {
  switch (type) {
    case PWX_CHAR:
      return with(char{});
    case PWX_SIGNED_CHAR:
      return with(static_cast<signed char>(0));
    case PWX_UNSIGNED_CHAR:
      return with(static_cast<unsigned char>(0));
    case PWX_SHORT:
      return with(short{});
    case PWX_UNSIGNED_SHORT:
      return with(static_cast<unsigned short>(0));
    case PWX_INT:
      return with(0);
    case PWX_UNSIGNED_INT:
      return with(0U);
    case PWX_LONG:
      return with(0L);
    case PWX_UNSIGNED_LONG:
      return with(0UL);
    case PWX_LONG_LONG:
      return with(0LL);
    case PWX_UNSIGNED_LONG_LONG:
      return with(0ULL);
    case PWX_BOOL:
      return with(false);
    case PWX_FLOAT:
      return with(0.0F);
    case PWX_DOUBLE:
      return with(0.0);
    case PWX_LONG_DOUBLE:
      return with(0.0L);
    case PWX_FLOAT_COMPLEX:
      return with(std::complex<float>{});
    case PWX_DOUBLE_COMPLEX:
      return with(std::complex<double>{});
  }
  refuse("elements of type ", static_cast<int>(type), ", which is none of C's");
}

}  // namespace pwx
