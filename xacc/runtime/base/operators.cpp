#include "xacc/runtime/base/operators.h"

#include <complex>
#include <type_traits>

#include "xacc/runtime/base/element_types.h"
#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

template <typename Value, typename Operator>
void combine(void* into, const void* earlier, const void* later, size_t count) {
  auto* to = static_cast<Value*>(into);
  const auto* a = static_cast<const Value*>(earlier);
  const auto* b = static_cast<const Value*>(later);
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<Value>(Operator()(a[i], b[i]));
}

struct Sum {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a + b;
  }
  // NOLINTNEXTLINE(readability-implicit-bool-conversion)
  auto operator()(bool a, bool b) const { return a || b; }
};
struct Product {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a * b;
  }
  auto operator()(bool a, bool b) const { return a && b; }
};
struct Max {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return b < a ? b : a;
  }
};
struct BitAnd {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a & b;
  }
};
struct BitOr {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a | b;
  }
};
struct BitXor {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a ^ b;
  }
};
struct And {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a != Value{} && b != Value{};
  }
};
struct Or {
  template <typename Value>
  auto operator()(Value a, Value b) const {
    return a != Value{} || b != Value{};
  }
};

/// Null if the type does not have the operator.
template <typename Value>
Combine combine_for(pwx_op op) {
  constexpr bool complex = !std::is_arithmetic_v<Value>;
  switch (op) {
    case PWX_SUM:
    case PWX_MINUS:
      return combine<Value, Sum>;
    case PWX_PRODUCT:
      return combine<Value, Product>;
    case PWX_AND:
      return combine<Value, And>;
    case PWX_OR:
      return combine<Value, Or>;
    default:
      break;
  }
  if constexpr (!complex) {
    if (op == PWX_MAX || op == PWX_FIRST_MAX || op == PWX_LAST_MAX) return combine<Value, Max>;
    if (op == PWX_MIN || op == PWX_FIRST_MIN || op == PWX_LAST_MIN) return combine<Value, Min>;
  }
  if constexpr (std::is_integral_v<Value>) {
    if (op == PWX_BIT_AND) return combine<Value, BitAnd>;
    if (op == PWX_BIT_OR) return combine<Value, BitOr>;
    if (op == PWX_BIT_XOR) return combine<Value, BitXor>;
  }
  return nullptr;
}

template <typename Value>
bool greater(const void* earlier, const void* later) {
  return *static_cast<const Value*>(earlier) < *static_cast<const Value*>(later);
}
template <typename Value>
bool not_less(const void* earlier, const void* later) {
  return *static_cast<const Value*>(earlier) <= *static_cast<const Value*>(later);
}
template <typename Value>
bool less(const void* earlier, const void* later) {
  return *static_cast<const Value*>(later) < *static_cast<const Value*>(earlier);
}
template <typename Value>
bool not_greater(const void* earlier, const void* later) {
  return *static_cast<const Value*>(later) <= *static_cast<const Value*>(earlier);
}

template <typename Value>
Replaces replaces_for(pwx_op op) {
  if constexpr (std::is_arithmetic_v<Value>) {
    if (op == PWX_FIRST_MAX || op == PWX_MAX) return greater<Value>;
    if (op == PWX_LAST_MAX) return not_less<Value>;
    if (op == PWX_FIRST_MIN || op == PWX_MIN) return less<Value>;
    if (op == PWX_LAST_MIN) return not_greater<Value>;
  }
  return nullptr;
}

const char* kNoOperator =
    "a reduction with an operator that its type does not have: bits are of integers, "
    "max and min not of complex numbers";

}  // namespace

size_t size_of(pwx_type type) {
  return for_type(type, [](auto value) { return sizeof value; });
}

Combine combine_of(pwx_op op, pwx_type type) {
  const Combine combine = for_type(type, [&](auto value) { return combine_for<decltype(value)>(op); });
  if (combine == nullptr) throw Failure(kNoOperator);
  return combine;
}

Replaces replaces_of(pwx_op op, pwx_type type) {
  const Replaces replaces = for_type(type, [&](auto value) { return replaces_for<decltype(value)>(op); });
  if (replaces == nullptr) throw Failure(kNoOperator);
  return replaces;
}

const char* kernel_name_of(pwx_op op) {
  switch (op) {
    case PWX_SUM:
    case PWX_MINUS:
      return "pwx_sum";
    case PWX_PRODUCT:
      return "pwx_product";
    case PWX_MAX:
      return "pwx_max";
    case PWX_MIN:
      return "pwx_min";
    case PWX_BIT_AND:
      return "pwx_bit_and";
    case PWX_BIT_OR:
      return "pwx_bit_or";
    case PWX_BIT_XOR:
      return "pwx_bit_xor";
    case PWX_AND:
      return "pwx_and";
    case PWX_OR:
      return "pwx_or";
    default:
      return nullptr;
  }
}

const char* kernel_name_of(pwx_type type) {
  switch (type) {
    case PWX_CHAR:
      return "char";
    case PWX_SIGNED_CHAR:
      return "signed char";
    case PWX_UNSIGNED_CHAR:
      return "unsigned char";
    case PWX_SHORT:
      return "short";
    case PWX_UNSIGNED_SHORT:
      return "unsigned short";
    case PWX_INT:
      return "int";
    case PWX_UNSIGNED_INT:
      return "unsigned int";
    case PWX_LONG:
      return "long";
    case PWX_UNSIGNED_LONG:
      return "unsigned long";
    case PWX_LONG_LONG:
      return "long long";
    case PWX_UNSIGNED_LONG_LONG:
      return "unsigned long long";
    case PWX_BOOL:
      return "bool";
    case PWX_FLOAT:
      return "float";
    case PWX_DOUBLE:
      return "double";
    case PWX_FLOAT_COMPLEX:
      return "pwx_complex<float>";
    case PWX_DOUBLE_COMPLEX:
      return "pwx_complex<double>";
    default:
      return nullptr;
  }
}

}  // namespace pwx
