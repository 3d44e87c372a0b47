#include "memory/control.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/format.h"
#include "base/host_id.h"
#include "base/status.h"
#include "device/host/host.h"

namespace pw {
ControlSegment::ControlSegment()
    : descriptor_(make_memfd("peerway-control", sizeof(Control), sizeof(Control))),
      used_units_(kSignalWords / kSignalUnit) {
  void* address = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED) throw Error(PW_NO_MEMORY, "mapping the control segment" + errno_text(errno));
  control_ = {static_cast<Control*>(address), unmap_control};
  control_->wakeup_pipe_identity.store(wakeup_pipe_.identity(), std::memory_order_relaxed);
  control_->wakeup_pipe.store(wakeup_pipe_.descriptor(), std::memory_order_release);
  waiting_ = std::make_shared<Waiting>(std::shared_ptr<Sleepers>(control_, &control_->sleepers));
  let_sleepers_order();
  allow_attachment();
}

void ControlSegment::close_for_all() {
  if (!mine()) return;
  control_->closed.store(1, std::memory_order_release);
  waiting_->wake();
}

uint32_t ControlSegment::open_slot() {
  std::lock_guard lock(mutex_);
  uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (next_slot_ < kRegionSlots) {
    slot = next_slot_++;
  } else {
    throw Error(PW_NO_MEMORY,
                format("all {} regions and signals of this rank are open; close some", kRegionSlots));
  }
  control_->generation[slot].fetch_add(1, std::memory_order_release);
  return slot;
}

void ControlSegment::close_slot(uint32_t slot) {
  if (!mine()) return;
  std::lock_guard lock(mutex_);
  control_->generation[slot].fetch_add(1, std::memory_order_release);
  free_slots_.push_back(slot);
}

uint32_t ControlSegment::take_words(uint32_t words) {
  const uint32_t units = (words + kSignalUnit - 1) / kSignalUnit;
  std::lock_guard lock(mutex_);
  for (const uint32_t begin : {next_unit_, 0u}) {
    uint32_t run = 0;
    for (uint32_t unit = begin; unit < used_units_.size(); ++unit) {
      run = used_units_[unit] ? 0 : run + 1;
      if (run < units) continue;
      const uint32_t first = (unit + 1 - units) * kSignalUnit;
      for (uint32_t u = unit + 1 - units; u <= unit; ++u) used_units_[u] = true;
      for (uint32_t w = 0; w < words; ++w) control_->signal[first + w].store(0, std::memory_order_release);
      next_unit_ = unit + 1;
      return first;
    }
  }
  throw Error(PW_NO_MEMORY, format("no {} signal words in a row are free (of {}); close signals, or "
                                   "name their sender: a signal "
                                   "that any rank may notify takes a word a rank",
                                   words, kSignalWords));
}

void ControlSegment::give_words(uint32_t first, uint32_t words) {
  std::lock_guard lock(mutex_);
  for (uint32_t unit = first / kSignalUnit; unit * kSignalUnit < first + words; ++unit)
    used_units_[unit] = false;
}

ProcessFacts facts_of_process(const ControlSegment& segment) {
  ProcessFacts facts{};
  facts.host_id = host_id(settings::host_id.text());
  facts.process = getpid();
  facts.control = segment.descriptor();
  facts.control_identity = memfd_identity(segment.descriptor());
  sched_getaffinity(0, sizeof facts.cpus, &facts.cpus);
  return facts;
}

Control* map_control(const Neighbour& neighbour) {
  const std::string whose = format("process {} (rank {})", neighbour.process, neighbour.rank);
  return reinterpret_cast<Control*>(map_memfd_of(neighbour.process, neighbour.control,
                                                 neighbour.control_identity, sizeof(Control), whose.c_str()));
}

void unmap_control(Control* control) noexcept { munmap(control, sizeof(Control)); }

}  // namespace pw
