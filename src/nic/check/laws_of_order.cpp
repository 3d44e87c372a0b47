#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "nic/check/laws.h"

namespace pw::nic::check {
namespace {

constexpr uint64_t kRounds = 2000;

std::string gets_in_order(NearEnd& near) {
  near.renew_far_memory();
  for (int round = 0; round < 50; ++round) {
    const std::vector<Counted*> dones = near.fresh(64);
    for (size_t n = 0; n < dones.size(); ++n) {
      const uint64_t bytes =
          n % 3 == 0 ? std::min<uint64_t>(near.largest(), 16384) : 8;  // large before small
      if (near.get(0, near.at(0), bytes, dones[n]) != PW_NIC_OK) throw Broken{"a get was refused"};
    }
    for (Counted* done : dones) near.wait(*done, "a get");
    for (size_t n = 1; n < dones.size(); ++n)
      if (dones[n]->order < dones[n - 1]->order)
        throw Broken{"a get was done before an earlier one; gets from one peer complete in order"};
  }
  return "large and small, 3,200 gets";
}

std::string puts_in_order(NearEnd& near) {
  const bool promised = (near.info().promises & PW_NIC_PUTS_IN_ORDER) != 0;
  const uint64_t large = std::min<uint64_t>(near.largest(), 65536) / 8 * 8;
  bool seen_before = false;
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{512}, large}) {
    const auto put_both = [&](const void* block, uint64_t word, pw_nic_done* done) {
      const pw_nic_status status = near.put(kWatchedBlock, block, false, bytes, done);
      return status != PW_NIC_OK ? status : near.put(kWatchedWord, &word, true, 8, nullptr);
    };
    const Reply found = near.watched(bytes, bytes == large ? kRounds / 4 : kRounds, put_both);
    if (found.why == "torn") throw Broken{"an aligned word of 8 bytes arrived in parts"};
    seen_before |= found.value != 0;
    if (promised && found.value != 0)
      throw Broken{
          format("PW_NIC_PUTS_IN_ORDER is promised, but in round {} a word of 8 bytes was seen before "
                 "the {} bytes that were put ahead of it; do not promise it",
                 found.value, bytes)};
  }
  if (promised) return format("promised, and seen in {} rounds", 2 * kRounds + kRounds / 4);
  return seen_before ? "not promised, and puts did overtake" : "not promised (none was seen to overtake)";
}

std::string gets_behind_puts(NearEnd& near) {
  const bool promised = (near.info().promises & PW_NIC_GETS_BEHIND_PUTS) != 0;
  near.renew_far_memory();
  uint64_t older = 0;
  for (const uint64_t bytes : {uint64_t{8}, std::min<uint64_t>(near.largest(), 65536) / 8 * 8})
    for (uint64_t v = 1; v <= kRounds / 2; ++v) {
      const uint64_t word = word_of(v + bytes);
      std::fill_n(reinterpret_cast<uint64_t*>(near.at(0)), bytes / 8, word);
      Counted &put = near.fresh(), &got = near.fresh();
      if (near.put(0, near.at(0), false, bytes, &put) != PW_NIC_OK ||
          near.get(bytes - 8, near.at(NearEnd::kRoom - 8), 8, &got) != PW_NIC_OK)
        throw Broken{"a put or get was refused"};
      near.wait(got, "a get");
      near.wait(put, "a put");
      uint64_t found = 0;
      std::memcpy(&found, near.at(NearEnd::kRoom - 8), 8);
      older += found != word;
      if (promised && found != word)
        throw Broken{
            format("PW_NIC_GETS_BEHIND_PUTS is promised, but a get after a put of {} bytes read what was "
                   "there before; do not promise it",
                   bytes)};
    }
  if (promised) return format("promised, and seen in {} rounds", kRounds);
  return older != 0 ? "not promised, and gets did overtake" : "not promised (none was seen to overtake)";
}

}  // namespace

std::span<const Law> laws_of_order() {
  static constexpr Law kLaws[] = {
      {"gets in order", gets_in_order},
      {"whole words, and puts in order", puts_in_order},
      {"gets behind puts", gets_behind_puts},
  };
  return kLaws;
}

}  // namespace pw::nic::check
