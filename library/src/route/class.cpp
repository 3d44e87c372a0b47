// Names of the classes by which costs are kept, to and from text.
#include "route/class.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "device/kinds.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

constexpr std::string_view kRemote = "remote:";
constexpr size_t kMaxWord = 32;

struct Class {
  ShapeClass shape;
  uint64_t largest_block;  ///< bytes; contiguous shapes have no blocks
  std::string_view name;
};
constexpr Class kClasses[] = {
    {ShapeClass::contiguous, 0, "contiguous"},      {ShapeClass::blocks_16, 16, "blocks-16"},
    {ShapeClass::blocks_128, 128, "blocks-128"},    {ShapeClass::blocks_1024, 1024, "blocks-1024"},
    {ShapeClass::blocks_8192, 8192, "blocks-8192"}, {ShapeClass::blocks_large, UINT64_MAX, "blocks-large"}};

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// "host", or "host:malloc".
bool is_memory_class(std::string_view text) {
  const size_t colon = text.find(':');
  return !text.starts_with(kRemote) && is_word(text.substr(0, colon)) &&
         (colon == std::string_view::npos || is_word(text.substr(colon + 1)));
}

}  // namespace

std::string memory_class(pw_device_kind kind, Handle handle) {
  std::string device(device_kinds()[kind].name);
  if (handle == Handle::process) return device + ":malloc";
  if (handle == Handle::none) return device + ":private";
  return device;
}

ShapeClass shape_class(const Shape& shape) {
  if (shape.contiguous()) return ShapeClass::contiguous;
  const auto fits = [&](const Class& each) { return shape.block_bytes <= each.largest_block; };
  return std::find_if(std::begin(kClasses) + 1, std::end(kClasses), fits)->shape;
}

constexpr std::array<std::string_view, 3> kOps = {"put", "get", "send"};  // in the order of Op

std::string to_string(Op op) { return std::string(kOps.at(static_cast<size_t>(op))); }

std::string to_string(ShapeClass shape) {
  for (const Class& each : kClasses)
    if (each.shape == shape) return std::string(each.name);
  throw Error(PW_INTERNAL, format("{} is not a shape class", static_cast<int>(shape)));
}

std::string to_string(const PairClass& pair) {
  std::string text = pair.remote ? std::string(kRemote) : "";
  text += pair.source + "->" + pair.target;
  if (!pair.link.empty()) text += "/" + pair.link;
  return text;
}

std::string to_string(const Case& which) {
  return to_string(which.op) + " " + to_string(which.shape) + " " + to_string(which.pair);
}

Op parse_op(std::string_view text) {
  if (const auto op = std::ranges::find(kOps, text); op != kOps.end())
    return static_cast<Op>(op - kOps.begin());
  throw Error(PW_INVALID_ARGUMENT,
              format("{} is not an operation; allowed are put, get and send", in_quotes(text)));
}

ShapeClass parse_shape_class(std::string_view text) {
  std::vector<std::string> names;
  for (const Class& each : kClasses) {
    if (text == each.name) return each.shape;
    names.emplace_back(each.name);
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
    if (is_memory_class(pair.source) && is_memory_class(pair.target) && (!linked || is_word(pair.link)))
      return pair;
  }
  throw Error(PW_INVALID_ARGUMENT, format("{} is not a pair of memories; it must look like \"host->cuda\", "
                                          "\"cuda->cuda/nvlink\", \"host->host:malloc\" or "
                                          "\"remote:host->host\"",
                                          in_quotes(text)));
}

bool is_path_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:/-").find(c) != std::string_view::npos;
  });
}

}  // namespace pw::route
