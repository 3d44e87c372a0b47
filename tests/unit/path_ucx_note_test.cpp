// The notes of ucx/staged: what is written is read, everything else is refused; and the target's check of a
// request.
#include <gtest/gtest.h>

#include "base/status.h"
#include "path/ucx/note.h"

namespace pw::ucx {
namespace {

RequestNote request() {
  RequestNote note;
  note.rank = 3;
  note.number = uint64_t{1} << 40;
  note.op = Op::get;
  note.slot = 17;
  note.generation = 5;
  note.offset = 4096;
  note.layout.shape.block_bytes = 8;
  note.layout.shape.dims = 2;
  note.layout.shape.count = {3, 5, 0, 0};
  note.layout.to = {64, 8, 0, 0};
  note.layout.from = {uint64_t{1} << 33, 16, 0, 0};
  return note;
}

TEST(Note, ARequestIsReadAsItWasWritten) {
  const RequestNote sent = request();
  const auto got = std::get<RequestNote>(read_note(write(sent), 4));
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.number, sent.number);
  EXPECT_EQ(got.op, sent.op);
  EXPECT_EQ(got.slot, sent.slot);
  EXPECT_EQ(got.generation, sent.generation);
  EXPECT_EQ(got.offset, sent.offset);
  EXPECT_EQ(got.layout.shape.block_bytes, sent.layout.shape.block_bytes);
  EXPECT_EQ(got.layout.shape.dims, sent.layout.shape.dims);
  EXPECT_EQ(got.layout.shape.count, sent.layout.shape.count);
  EXPECT_EQ(got.layout.to, sent.layout.to);
  EXPECT_EQ(got.layout.from, sent.layout.from);
}

TEST(Note, ARingIsReadAsItWasWritten) {
  RingNote sent;
  sent.answer = true;
  sent.rank = 1;
  sent.status = PW_NO_MEMORY;
  sent.address = 0x7f0000001000;
  sent.key = Bytes(195, std::byte{0x5a});
  const auto got = std::get<RingNote>(read_note(write(sent), 2));
  EXPECT_TRUE(got.answer);
  EXPECT_EQ(got.rank, 1);
  EXPECT_EQ(got.status, PW_NO_MEMORY);
  EXPECT_EQ(got.address, sent.address);
  EXPECT_EQ(got.key, sent.key);
}

TEST(Note, ATruncatedOrForeignNoteIsRefused) {
  const Bytes whole = write(request());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(read_note(ByteView(whole).first(length), 4), Error) << length;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(read_note(longer, 4), Error);
  EXPECT_THROW(read_note(whole, 3), Error) << "rank 3 of 3";
  Bytes unknown = whole;
  unknown[0] = std::byte{9};
  EXPECT_THROW(read_note(unknown, 4), Error);
}

TEST(Note, ALayoutOfTooManyDimensionsIsRefused) {
  RequestNote note = request();
  note.layout.shape.dims = PW_MAX_DIMS + 1;
  EXPECT_THROW(read_note(write(note), 4), Error);
}

TEST(LiesInside, TheLastByteCounts) {
  Shape shape;
  shape.block_bytes = 8;
  EXPECT_TRUE(lies_inside(shape, {}, 92, 100));
  EXPECT_FALSE(lies_inside(shape, {}, 93, 100));
  shape.dims = 2;
  shape.count = {3, 2, 0, 0};
  const Strides strides = {40, 8, 0, 0};  // ends at 2 * 40 + 8 + 8
  EXPECT_TRUE(lies_inside(shape, strides, 4, 100));
  EXPECT_FALSE(lies_inside(shape, strides, 5, 100));
}

TEST(LiesInside, NothingWrapsAround) {
  Shape shape;
  shape.block_bytes = UINT64_MAX;
  EXPECT_FALSE(lies_inside(shape, {}, 8, 1 << 20));
  shape.block_bytes = 8;
  shape.dims = 4;
  shape.count = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  EXPECT_FALSE(lies_inside(shape, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, 0, UINT64_MAX));
  shape.dims = 1;
  shape.count = {2, 0, 0, 0};
  EXPECT_FALSE(lies_inside(shape, {-8, 0, 0, 0}, 0, 100)) << "a negative stride";
  shape.count = {0, 0, 0, 0};
  EXPECT_FALSE(lies_inside(shape, {8, 0, 0, 0}, 0, 100)) << "a count of zero";
}

}  // namespace
}  // namespace pw::ucx
