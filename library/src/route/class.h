// The inputs of a routing decision besides the size: the operation, the class of the shape and the class of
// the pair of memories. Costs are measured, stored and looked up by these.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "device/shape.h"
#include "transport/path.h"

namespace pw::route {

/// The layout of the bytes. Strided shapes are classified by the bytes of one block, which determine their
/// cost.
enum class ShapeClass : uint8_t { contiguous, blocks_16, blocks_128, blocks_1024, blocks_8192, blocks_large };

inline constexpr std::array<ShapeClass, 6> kShapeClasses = {
    ShapeClass::contiguous,  ShapeClass::blocks_16,   ShapeClass::blocks_128,
    ShapeClass::blocks_1024, ShapeClass::blocks_8192, ShapeClass::blocks_large};

ShapeClass shape_class(const Shape& shape);

/// Between which memories, and over which link, the bytes flow: "host->host", "cuda->cuda/nvlink",
/// "host->host:malloc", "remote:host->host". The source of the bytes comes first, also for a get.
struct PairClass {
  std::string source = "host";  ///< class of memory, as memory_class() names it
  std::string target = "host";
  std::string link;     ///< "nvlink", "pcie", "same", "time-sliced"; empty if there is only one kind of link
  bool remote = false;  ///< whether the two ends are on different hosts
  bool operator==(const PairClass&) const = default;
};

/// Returns the name of a class of memory at the far end of an operation on the same host: "host" or "cuda".
/// If what peers can do with the memory decides which paths exist, it is "host:malloc" (not allocated by
/// Peerway: peers can read and write it, but not map it) or "cuda:private" (cannot be shared at all).
std::string memory_class(pw_device_kind kind, Handle handle);

/// The case for which a decision is made.
struct Case {
  Op op = Op::put;
  ShapeClass shape = ShapeClass::contiguous;
  PairClass pair;
  bool operator==(const Case&) const = default;
};

std::string to_string(Op op);             ///< "put", "get", "send"
std::string to_string(ShapeClass shape);  ///< "contiguous", "blocks-16", ... "blocks-large"
std::string to_string(const PairClass& pair);
std::string to_string(const Case& which);  ///< "put contiguous host->host"

/// The reverse of to_string. Throw Error(PW_INVALID_ARGUMENT) with the text and what is allowed.
Op parse_op(std::string_view text);
ShapeClass parse_shape_class(std::string_view text);
PairClass parse_pair_class(std::string_view text);

/// The methods of a plan's sends, named like paths, in order of preference.
inline constexpr std::array<std::string_view, 5> kPlanMethods = {"plan/lines", "plan/packets", "plan/slots",
                                                                 "plan/straight", "plan/posted"};

/// Whether `text` can be the name of a path, like "peer/copy", "staged", "nic:toy": 1 to 64 letters, digits
/// and _ . : / -
bool is_path_name(std::string_view text);

}  // namespace pw::route
