// Names of ops, shape classes, pair classes and sizes: to text and back, and what is refused.
#include <gtest/gtest.h>

#include "base/status.h"
#include "device/cuda/pointer.h"
#include "route/class.h"
#include "route/size_text.h"
#include "route/suggest.h"

namespace pw::route {
namespace {

Shape strided(uint64_t block_bytes) { return {.block_bytes = block_bytes, .dims = 1, .count = {4}}; }

template <typename Body>
std::string message_of(Body&& body, pw_status expected = PW_INVALID_ARGUMENT) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(RouteClass, ShapesByBlockBytes) {
  const std::pair<uint64_t, ShapeClass> table[] = {
      {1, ShapeClass::blocks_16},      {16, ShapeClass::blocks_16},     {17, ShapeClass::blocks_128},
      {128, ShapeClass::blocks_128},   {1024, ShapeClass::blocks_1024}, {1025, ShapeClass::blocks_8192},
      {8192, ShapeClass::blocks_8192}, {8193, ShapeClass::blocks_large}};
  for (const auto& [bytes, expected] : table) EXPECT_EQ(shape_class(strided(bytes)), expected) << bytes;
  EXPECT_EQ(shape_class({.block_bytes = 8}), ShapeClass::contiguous);
}

TEST(RouteClass, TextRoundTrip) {
  for (ShapeClass shape : kShapeClasses) EXPECT_EQ(parse_shape_class(to_string(shape)), shape);
  for (Op op : {Op::put, Op::get, Op::send}) EXPECT_EQ(parse_op(to_string(op)), op);
  for (const char* text :
       {"host->host", "cuda->cuda/nvlink", "cuda->host", "remote:host->host", "remote:cuda->hip/a-b",
        "host->host:malloc", "host:malloc->cuda", "cuda:private->cuda/same"})
    EXPECT_EQ(to_string(parse_pair_class(text)), text);
}

TEST(RouteClass, MemoryThatPeersCannotMapIsAClassOfItsOwn) {
  const std::tuple<pw_device_kind, Handle, const char*> table[] = {{PW_HOST, Handle::memfd, "host"},
                                                                   {PW_HOST, Handle::process, "host:malloc"},
                                                                   {PW_HOST, Handle::none, "host:private"},
                                                                   {PW_CUDA, cuda::kIpc, "cuda"},
                                                                   {PW_CUDA, cuda::kFd, "cuda"},
                                                                   {PW_CUDA, cuda::kFabric, "cuda"},
                                                                   {PW_CUDA, cuda::kPool, "cuda"},
                                                                   {PW_CUDA, Handle::none, "cuda:private"}};
  for (const auto& [kind, handle, name] : table) EXPECT_EQ(memory_class(kind, handle), name);
}

TEST(RouteClass, ShapesNeedNoQuotesInAShell) {
  for (ShapeClass shape : kShapeClasses)
    EXPECT_EQ(to_string(shape).find_first_of("<>|&;()$`\\\"' *?[]#~=%!{}"), std::string::npos);
}

TEST(RouteClass, RefusesWhatIsNoPair) {
  for (const char* text : {"", "host", "->", "host->", "->host", "Host->host", "host->host/",
                           "remote:", "host->a b", "host->cuda->host", "host->host/a/b",
                           "remote:remote:host->host", "host:->host", "host->host:a:b", ":malloc->host"})
    EXPECT_NE(message_of([&] { parse_pair_class(text); }).find("host->cuda"), std::string::npos) << text;
}

TEST(RouteClass, SuggestsTheNearestName) {
  EXPECT_NE(message_of([] { parse_shape_class("contigous"); }).find("did you mean \"contiguous\"?"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_op("pull"); }).find("put, get and send"), std::string::npos);
  const std::vector<std::string> words = {"peer/copy", "peer/store", "staged"};
  EXPECT_EQ(nearest("peer/stor", words), "peer/store");
  EXPECT_EQ(nearest("stagde", words), "staged");
  EXPECT_EQ(nearest("zzzzzz", words), "");
  EXPECT_EQ(nearest(std::string(10000, 'a'), words), "");
}

TEST(RouteSizes, RoundTrip) {
  const std::pair<const char*, uint64_t> table[] = {{"0", 0},
                                                    {"1", 1},
                                                    {"4096", 4096},
                                                    {"64K", 65536},
                                                    {"1M", 1 << 20},
                                                    {"3G", uint64_t{3} << 30},
                                                    {"9223372036854775807", kEnd - 1}};
  for (const auto& [text, bytes] : table) {
    EXPECT_EQ(parse_size(text), bytes);
    EXPECT_EQ(parse_size(print_size(bytes)), bytes);
  }
  EXPECT_EQ(print_size(65536), "64K");
  EXPECT_EQ(print_size(65537), "65537");
}

TEST(RouteSizes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "-1", "1.5M", "64KB", "64k", " 1", "9223372036854775808", "8388608T",
                           "99999999999999999999"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(RouteSizes, Ranges) {
  EXPECT_EQ(parse_size_range("64K:1M"), (SizeRange{65536, (1 << 20) + 1}));
  EXPECT_EQ(parse_size_range("64K:"), (SizeRange{65536, kEnd}));
  EXPECT_EQ(parse_size_range(":8"), (SizeRange{1, 9}));
  EXPECT_EQ(parse_size_range("8"), (SizeRange{8, 9}));
  EXPECT_EQ(parse_size_range("*"), SizeRange{});
  EXPECT_NE(message_of([] { parse_size_range("1M:64K"); }).find("smaller size first"), std::string::npos);
  for (const char* text : {"", "a:b", "1:2:3", "64K:x", "0:0"}) message_of([&] { parse_size_range(text); });
}

}  // namespace
}  // namespace pw::route
