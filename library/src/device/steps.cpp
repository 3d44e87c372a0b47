#include "device/steps.h"

#include <algorithm>
#include <bit>

#include "device/device.h"

namespace pw {

using peerway::device::Divisor;

namespace {

uint64_t address_of(const std::byte* pointer) { return reinterpret_cast<uint64_t>(pointer); }

void add_level(peerway::device::StridedCopy& strided, uint64_t count, int64_t to, int64_t from) {
  strided.inner[strided.inner_levels++] = {divisor(static_cast<uint32_t>(count)), to, from};
}

peerway::device::StepWords words_of(const GrowingWords& words, uint64_t address) {
  return {reinterpret_cast<peerway::device::Word*>(address), words.base, words.by, words.lag};
}

// Returns the number of words of each piece. Pieces do not share a line.
unsigned share_of(const peerway::device::Step& step) {
  const unsigned unit = by_lines(step.kind) ? peerway::device::kWordsOfLine : 1;
  const unsigned units = (step.copy.words + unit - 1) / unit;
  return (units + step.pieces - 1) / step.pieces * unit;
}

}  // namespace

bool by_lines(StepKind kind) { return kind == StepKind::send_lines || kind == StepKind::receive_lines; }

Divisor divisor(uint32_t count) {
  const unsigned shift = static_cast<unsigned>(std::bit_width(count - 1));  // smallest with 2^shift >= count
  const uint64_t magic = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - count)) / count + 1;
  return {count, static_cast<unsigned>(magic), shift};
}

unsigned word_bytes(const Copy& copy) {
  const Layout& layout = copy.layout;
  uint64_t bits = 16;
  if (layout.shape.contiguous()) {
    bits |= address_of(copy.to) ^ address_of(copy.from);
  } else {
    bits |= address_of(copy.to) | address_of(copy.from) | layout.shape.block_bytes;
    for (uint32_t d = 0; d < layout.shape.dims; ++d)
      bits |= static_cast<uint64_t>(layout.to[d]) | static_cast<uint64_t>(layout.from[d]);
  }
  return 1u << std::countr_zero(bits);
}

peerway::device::StridedCopy strided(const Copy& copy, unsigned word_bytes) {
  const Layout& layout = copy.layout;
  peerway::device::StridedCopy strided{};
  strided.to = reinterpret_cast<unsigned char*>(copy.to);
  strided.from = reinterpret_cast<const unsigned char*>(copy.from);
  if (layout.shape.contiguous()) {
    const uint64_t bytes = layout.shape.block_bytes;
    const uint64_t head = std::min<uint64_t>(bytes, -address_of(copy.to) & (word_bytes - 1));
    strided.to += head;
    strided.from += head;
    strided.head = static_cast<unsigned>(head);
    strided.words = static_cast<unsigned>((bytes - head) / word_bytes);
    strided.tail = static_cast<unsigned>((bytes - head) % word_bytes);
    strided.outer_to = strided.outer_from = word_bytes;
    return strided;
  }
  strided.words = static_cast<unsigned>(layout.shape.bytes() / word_bytes);
  // The words of a block are the innermost level, unless a block is one word.
  const uint64_t words_in_block = layout.shape.block_bytes / word_bytes;
  if (words_in_block > 1) add_level(strided, words_in_block, word_bytes, word_bytes);
  for (uint32_t d = layout.shape.dims; d-- > 1;)
    add_level(strided, layout.shape.count[d], layout.to[d], layout.from[d]);
  strided.outer_to = layout.to[0];
  strided.outer_from = layout.from[0];
  return strided;
}

std::vector<peerway::device::Step> make_steps(const Program& program,
                                              const std::function<uint64_t(const void*)>& seen) {
  std::vector<peerway::device::Step> steps;
  unsigned first = 0;
  const auto add = [&](const ProgramStep& from) {
    peerway::device::Step step{};
    step.kind = from.kind;
    step.first = first;
    step.pieces = from.pieces;
    step.rank = from.rank;
    step.words = std::max(from.wait.word != nullptr ? from.wait.count : 1, from.stored_words.count);
    if (from.layout.shape.block_bytes > 0) {
      const Copy copy{reinterpret_cast<std::byte*>(seen(from.to)),
                      reinterpret_cast<const std::byte*>(seen(from.from)), from.layout};
      step.unit = from.kind == StepKind::copy ? word_bytes(copy) : from.unit;
      step.copy = strided(copy, step.unit);
      step.share = share_of(step);
    }
    step.to_odd_offset = from.to_odd_offset;
    step.from_odd_offset = from.from_odd_offset;
    step.early = from.from_odd_offset == 0 && (from.reads_source_early || from.wait.word == nullptr) ? 1 : 0;
    if (from.wait.word != nullptr) step.wait = words_of(from.wait, seen(from.wait.word));
    if (from.stored_words.word != nullptr)
      step.mark = words_of(from.stored_words, seen(from.stored_words.word));
    first += step.pieces;
    steps.push_back(step);
  };
  for (const ProgramStep& step : program.start) add(step);
  for (const ProgramStep& step : program.finish) add(step);
  for (const ProgramRound& round : program.rounds)
    for (const ProgramStep& step : round.steps) add(step);
  return steps;
}

}  // namespace pw
