// ucx/staged: through pinned host memory at both ends, pipelined. The device's queue copies chunk after chunk
// into (or out of) a ring of host memory, UCX moves them between the rings and the target's service thread
// does the other half. UCX never sees the memory itself, so this is what GPUDirect RDMA is compared with, the
// way where UCX has no GPU support, and the way to pack small blocks into large messages.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "path/ucx/staged_service.h"

namespace pw {

class UcxStaged final : public Path {
 public:
  UcxStaged(Surroundings surroundings, ucx::Ucx& ucx);
  ~UcxStaged() override;
  [[nodiscard]] std::string_view name() const override { return "ucx/staged"; }
  [[nodiscard]] Offer probe(const Pair& pair) const override;
  void prepare(const Transfer& transfer) override;
  pw_status start(const Transfer& transfer) override;
  Mark mark(int rank) override;
  bool reached(int rank, Mark mark) override;
  pw_status outcome(int rank, Mark mark) override;
  [[nodiscard]] Source* source() override { return ucx_.engine(); }

 private:
  struct Line;  ///< the rings towards one rank

  Line& line_to(int rank);
  Line* known_line(int rank);  ///< null where nothing was ever started
  void open(Line& line);
  void answered(ucx::RingNote note);
  pw_status move(Line& line, const Transfer& transfer);

  Surroundings surroundings_;
  const Secret secret_;  ///< of notes
  ucx::Ucx& ucx_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Line>> lines_;
  ucx::StagedService service_;  ///< last: its thread calls answered()
};

}  // namespace pw
