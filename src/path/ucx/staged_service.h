// The target's half of ucx/staged: a thread that answers the notes of peers and copies between rings and this
// rank's regions. It sleeps while nobody asks for anything.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "path/ucx/note.h"
#include "path/ucx/ring.h"
#include "path/ucx/ucx.h"

namespace pw::ucx {

class StagedService {
 public:
  /// `answered` gets the answers to this rank's own questions.
  StagedService(Surroundings surroundings, Ucx& ucx, std::function<void(RingNote)> answered);
  ~StagedService();

 private:
  struct Served;  ///< a peer that has opened its rings, and how far its requests are

  void run();
  void receive(ByteView note);  ///< quick: called by UCX
  bool wait_for_notes(std::deque<Bytes>& notes, bool busy);
  void handle(const Bytes& bytes);
  void open(const RingNote& note);
  bool step(Served& served);  ///< true while there is work
  bool take_request(Served& served);
  void finish_request(Served& served);

  Surroundings surroundings_;
  const Secret secret_;  ///< of notes
  Ucx& ucx_;
  std::function<void(RingNote)> answered_;
  std::map<int, std::unique_ptr<Served>> served_;  ///< by rank; of the thread
  std::mutex mutex_;                               ///< of what follows
  std::condition_variable changed_;
  std::deque<Bytes> notes_;
  bool stop_ = false;
  std::thread thread_;  ///< started with the first note
};

}  // namespace pw::ucx
