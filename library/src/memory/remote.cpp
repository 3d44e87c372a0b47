#include "memory/remote.h"

#include "base/format.h"
#include "base/status.h"

namespace pw {

Remote::Remote(Key imported, Importer& importer, int own_rank)
    : key(std::move(imported)), importer_(importer) {
  const bool names_memory = key.type == KeyType::region || is_device_signal();
  if (names_memory && importer.same_host(key.rank) && key.exported.process != importer.process(key.rank))
    throw Error(PW_BAD_KEY, format("the key of rank {} names memory of process {}; that rank is process {}",
                                   key.rank, key.exported.process, importer.process(key.rank)));
  control_ = importer.control(key.rank);
  if (key.slot >= kRegionSlots)
    throw Error(PW_BAD_KEY, format("the key names slot {} of {}", key.slot, kRegionSlots));
  if (key.type == KeyType::signal) open_signal(own_rank);
  if (control_ == nullptr) return;
  generation_ = &control_->generation[key.slot];
  if (!current())
    throw Error(PW_STALE_KEY,
                format("the {} behind this key of rank {} was closed; ask that rank for a new key",
                       key.type == KeyType::signal ? "signal" : "region", key.rank));
  if (key.type == KeyType::signal || key.device.kind != PW_HOST) return;
  if (same_process())
    host_address_ = reinterpret_cast<std::byte*>(key.exported.address);
  else if (key.exported.handle == Handle::memfd)
    host_address_ = address_on(host_device());
}

void Remote::open_signal(int own_rank) {
  if (key.sender != PW_ANY_RANK && key.sender != own_rank)
    throw Error(PW_DENIED, format("this signal of rank {} was made for rank {} to notify; this is rank {}",
                                  key.rank, key.sender, own_rank));
  if (is_device_signal()) return open_device_signal(own_rank);
  const uint64_t index =
      uint64_t{key.word} + (key.sender == PW_ANY_RANK ? static_cast<uint64_t>(own_rank) : 0);
  if (index >= kSignalWords)
    throw Error(PW_BAD_KEY, format("the key names signal word {} of {}", index, kSignalWords));
  word_address_ = key.exported.address + (index - key.word) * sizeof(uint64_t);
  if (control_ != nullptr) word_ = &control_->signal[index];
  sender_ = importer_.sender(key.rank, key.slot, key.generation, word_);
}

void Remote::open_device_signal(int own_rank) {
  word_offset_ = key.sender == PW_ANY_RANK ? static_cast<uint64_t>(own_rank) * sizeof(uint64_t) : 0;
  if (word_offset_ >= key.bytes)
    throw Error(PW_BAD_KEY, format("the key names {} signal words; this is rank {}",
                                   key.bytes / sizeof(uint64_t), own_rank));
  sender_ = importer_.device_sender(key.rank, key.slot, key.generation);
}

std::byte* Remote::address_on(Device& device) {
  std::lock_guard lock(mutex_);
  auto& mapping = mappings_[&device];
  if (mapping == nullptr) mapping = importer_.map(key.rank, key.exported, device);
  return mapping->address() + key.exported.offset;
}

uint64_t* Remote::word_on(Device& device) {
  if (is_device_signal() && same_host()) {
    std::string why_not = "the CPU reaches no GPU memory";
    if (device.id().kind == PW_HOST || !device.reaches(key.exported, why_not))
      throw Error(PW_UNSUPPORTED,
                  format("{} cannot notify the signal of rank {}, which lies in the memory of its {}: "
                         "{}",
                         to_string(device.id()), key.rank, to_string(key.device), why_not));
    return reinterpret_cast<uint64_t*>(address_on(device) + word_offset_);
  }
  if (word_ == nullptr) return nullptr;
  importer_.pin_control(key.rank, device);
  return reinterpret_cast<uint64_t*>(word_);
}

}  // namespace pw
