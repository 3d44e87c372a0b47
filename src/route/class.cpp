// Names of the classes that costs are kept by, to and from text.
#include "route/class.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

constexpr std::string_view kRemote = "remote:";
constexpr size_t kMaxWord = 32;

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

ShapeClass shape_class(const Shape& shape) {
  if (shape.contiguous()) return ShapeClass::contiguous;
  if (shape.block_bytes <= 16) return ShapeClass::blocks_16;
  if (shape.block_bytes <= 128) return ShapeClass::blocks_128;
  if (shape.block_bytes <= 1024) return ShapeClass::blocks_1024;
  if (shape.block_bytes <= 8192) return ShapeClass::blocks_8192;
  return ShapeClass::blocks_large;
}

std::string to_string(Op op) { return op == Op::put ? "put" : "get"; }

std::string to_string(ShapeClass shape) {
  switch (shape) {
    case ShapeClass::contiguous:
      return "contiguous";
    case ShapeClass::blocks_16:
      return "blocks<=16";
    case ShapeClass::blocks_128:
      return "blocks<=128";
    case ShapeClass::blocks_1024:
      return "blocks<=1024";
    case ShapeClass::blocks_8192:
      return "blocks<=8192";
    case ShapeClass::blocks_large:
      return "blocks>8192";
  }
  throw Error(PW_INTERNAL, format("peerway: {} is not a shape class", static_cast<int>(shape)));
}

std::string to_string(const PairClass& pair) {
  std::string text = pair.remote ? std::string(kRemote) : "";
  text += pair.source + "->" + pair.target;
  if (!pair.link.empty()) text += "/" + pair.link;
  return text;
}

std::string to_string(const Case& where) {
  return to_string(where.op) + " " + to_string(where.shape) + " " + to_string(where.pair);
}

Op parse_op(std::string_view text) {
  if (text == "put") return Op::put;
  if (text == "get") return Op::get;
  throw Error(PW_INVALID_ARGUMENT,
              format("{} is not an operation; allowed are put and get", in_quotes(text)));
}

ShapeClass parse_shape_class(std::string_view text) {
  std::vector<std::string> names;
  for (ShapeClass shape : kShapeClasses) {
    names.push_back(to_string(shape));
    if (text == names.back()) return shape;
  }
  throw Error(PW_INVALID_ARGUMENT,
              format("{} is not a shape class{}", in_quotes(text), allowed(text, names)));
}

PairClass parse_pair_class(std::string_view text) {
  PairClass pair;
  std::string_view rest = text;
  if (rest.starts_with(kRemote)) {
    pair.remote = true;
    rest.remove_prefix(kRemote.size());
  }
  const size_t arrow = rest.find("->");
  if (arrow != std::string_view::npos) {
    const std::string_view target = rest.substr(arrow + 2);
    const size_t slash = target.find('/');
    pair.source = rest.substr(0, arrow);
    pair.target = target.substr(0, slash);
    const bool linked = slash != std::string_view::npos;
    if (linked) pair.link = target.substr(slash + 1);
    if (is_word(pair.source) && is_word(pair.target) && (!linked || is_word(pair.link))) return pair;
  }
  throw Error(PW_INVALID_ARGUMENT, format("{} is not a pair of memories; it must look like \"host->cuda\", "
                                          "\"cuda->cuda/nvlink\" or \"remote:host->host\"",
                                          in_quotes(text)));
}

bool is_path_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:/-").find(c) != std::string_view::npos;
  });
}

}  // namespace pw::route
