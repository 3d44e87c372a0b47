// What a routing decision depends on besides the size: the operation, the class of the shape and the class of
// the pair of memories. Costs are measured, stored and looked up by this.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/shape.h"
#include "transport/path.h"

namespace pw::route {

/// How the bytes lie. Strided shapes are classed by the bytes of one block, on which their cost depends.
enum class ShapeClass : uint8_t { contiguous, blocks_16, blocks_128, blocks_1024, blocks_8192, blocks_large };

inline constexpr std::array<ShapeClass, 6> kShapeClasses = {
    ShapeClass::contiguous,  ShapeClass::blocks_16,   ShapeClass::blocks_128,
    ShapeClass::blocks_1024, ShapeClass::blocks_8192, ShapeClass::blocks_large};

ShapeClass shape_class(const Shape& shape);

/// Where the bytes flow from and to, and over what: "host->host", "cuda->cuda/nvlink", "host->host:malloc",
/// "remote:host->host". The source of the bytes comes first, for a get too.
struct PairClass {
  std::string source = "host";  ///< kind of memory, as memory_class() names it
  std::string target = "host";
  std::string link;     ///< "nvlink", "pcie", "same", "time-sliced"; empty where there is only one kind
  bool remote = false;  ///< the two ends are on different hosts
  bool operator==(const PairClass&) const = default;
};

/// The name of a kind of memory at the far end of an operation on the same host: "host", "cuda", or, where
/// what peers can do with it decides which paths there are, "host:malloc" (not allocated by Peerway: it can
/// be read and written, but not mapped) and "cuda:private" (cannot be shared at all).
std::string memory_class(pw_device_kind kind, Handle handle);

/// The key of a decision.
struct Case {
  Op op = Op::put;
  ShapeClass shape = ShapeClass::contiguous;
  PairClass pair;
  bool operator==(const Case&) const = default;
};

std::string to_string(Op op);             ///< "put", "get", "send"
std::string to_string(ShapeClass shape);  ///< "contiguous", "blocks-16", ... "blocks-large"
std::string to_string(const PairClass& pair);
std::string to_string(const Case& where);  ///< "put contiguous host->host"

/// The reverse of to_string. Throw Error(PW_INVALID_ARGUMENT) naming the text and what is allowed.
Op parse_op(std::string_view text);
ShapeClass parse_shape_class(std::string_view text);
PairClass parse_pair_class(std::string_view text);

/// The methods by which a plan's send reaches its receive, named as paths are, in order of preference.
inline constexpr std::array<std::string_view, 5> kPlanMethods = {"plan/lines", "plan/packets", "plan/slots",
                                                                 "plan/straight", "plan/posted"};

/// "peer/copy", "staged", "nic:toy": letters, digits and _ . : / - , at most 64 of them.
bool is_path_name(std::string_view text);

}  // namespace pw::route
