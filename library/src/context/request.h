// Requests: started operations, to be tested and waited for. An operation's request consists of the marks
// that it is complete with. The request for the finish of a plan is in the layer above (plan/plan_request.h).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "context/context.h"

namespace pw {

class Request {
 public:
  virtual ~Request() = default;

  /// Whether it is complete; from then on never called again. `ended`: how, with the message in this thread.
  virtual bool complete(pw_status& ended) = 0;
  /// The source that brings the end nearer while somebody waits for it, if there is one.
  [[nodiscard]] virtual Source* source() { return nullptr; }
  /// Whether this rank's threads are woken at the end.
  [[nodiscard]] virtual Wakes wakes() { return Wakes::perhaps; }
};

/// A request for operations towards one rank, or all, and notifications of signals of another.
class MarksRequest final : public Request {
 public:
  /// To be made before the operation is started: what fails from here on is its concern.
  MarksRequest(Context& context, int rank) : context_(context) { depend(rank); }

  /// Also on this rank.
  void depend(int rank) { on_.push_back({rank, context_.failures().count(rank)}); }
  [[nodiscard]] Marks& marks() { return marks_; }

  bool complete(pw_status& ended) override;
  [[nodiscard]] Source* source() override { return marks_.source(); }
  [[nodiscard]] Wakes wakes() override { return marks_.wakes(); }

 private:
  struct On {
    int rank;
    uint64_t failures;  ///< towards it, before
  };
  Context& context_;
  std::vector<On> on_;
  Marks marks_;
};

}  // namespace pw

/// The request behind a handle of the C interface. Several threads may ask at once.
struct pw_request {
  explicit pw_request(std::shared_ptr<pw::Context> in) : context(std::move(in)) {}

  /// Asks, unless it was found complete before.
  bool complete();
  /// The status with which it ended, with the message in this thread.
  pw_status ending();
  /// Like those of a Request; if it is complete: none, and always true.
  [[nodiscard]] pw::Source* source();
  [[nodiscard]] pw::Wakes wakes();

  std::shared_ptr<pw::Context> context;
  std::unique_ptr<pw::Request> request;
  std::mutex mutex;
  bool over = false;
  pw_status ended = PW_OK;
  std::string why;
};
