// Requests: started operations, to be tested and waited for. An operation's request consists of the marks
// that complete it. The request for the finish of a plan is in the layer above (plan/plan_request.h).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context/context.h"

namespace pw {

/// What tells whether a started operation is complete. (peerway::Request of the C++ interface owns a handle
/// of it.)
class Request {
 public:
  virtual ~Request() = default;

  /// Returns whether the request is complete, and then sets `ended` to the status, with its message in this
  /// thread. Not called again once it has returned true.
  virtual bool complete(pw_status& ended) = 0;
  /// The source of progress that a waiting thread should poll most, or null.
  [[nodiscard]] virtual Source* source() { return nullptr; }
  /// Whether the completion always wakes this rank's threads.
  [[nodiscard]] virtual Wakes wakes() { return Wakes::perhaps; }
};

/// A request for operations towards one rank, or all ranks, and for notifications of another rank's signals.
class MarksRequest final : public Request {
 public:
  /// Make it before the operation is started: it reports failures that occur from now on.
  MarksRequest(Context& context, int rank) : context_(context) { watch_failures_of(rank); }

  /// Makes failures towards `rank` count, too.
  void watch_failures_of(int rank) { failures_.push_back({rank, context_.failures().count(rank)}); }
  [[nodiscard]] Marks& marks() { return marks_; }

  bool complete(pw_status& ended) override;
  [[nodiscard]] Source* source() override { return marks_.source(); }
  [[nodiscard]] Wakes wakes() override { return marks_.wakes(); }

 private:
  struct RankFailures {
    int rank;
    uint64_t count;  ///< towards the rank, before the operation
  };
  Context& context_;
  std::vector<RankFailures> failures_;
  Marks marks_;
};

}  // namespace pw

/// The request behind a handle of the C interface. Several threads may ask at once.
struct pw_request {
  explicit pw_request(std::shared_ptr<pw::Context> in) : context(std::move(in)) {}

  /// Tests the request, unless it was found complete before.
  bool complete();
  /// Returns the status of the complete request, with its message in this thread.
  pw_status ending();
  /// Like those of Request; for a complete request: no source, and always.
  [[nodiscard]] pw::Source* source();
  [[nodiscard]] pw::Wakes wakes();

  std::shared_ptr<pw::Context> context;
  std::unique_ptr<pw::Request> request;
  std::mutex mutex;
  bool over = false;
  pw_status ended = PW_OK;
  std::string why;
};
