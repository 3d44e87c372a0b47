// A halo plan for each of the two arrays, started by the host, on a stream or from a graph.
#include "plans.h"

#include <array>

#include "host.h"

namespace stencil {

namespace {

struct FreePlan {
  void operator()(pw_plan* plan) const { pw_plan_free(plan); }
};
using Plan = std::unique_ptr<pw_plan, FreePlan>;

pw_array array_of(const Lattice& lattice, const peerway::Region& region) {
  pw_array array{};
  array.region = region.get();
  array.element_bytes = sizeof(double);
  array.dims = 2;
  for (const Dim dim : {Y, X}) {
    array.dim[dim].extent = lattice.global[dim];
    array.dim[dim].grid_dim = dim;
    array.dim[dim].periodic = lattice.periodic ? 1 : 0;
    for (const Side side : {Before, After}) array.dim[dim].shadow[side] = array.dim[dim].width[side] = 1;
  }
  return array;
}

Plan halo(const Lattice& lattice, const peerway::Region& region, peerway::Context& context,
          uint64_t timeout_ns) {
  const pw_grid grid{
      .dims = 2, .extent = {static_cast<uint32_t>(lattice.grid[Y]), static_cast<uint32_t>(lattice.grid[X])}};
  const pw_array array = array_of(lattice, region);
  pw_plan* plan = nullptr;
  peerway::check(pw_halo_create(context.get(), &array, 1, &grid, PW_HALO_FACES, &plan));
  Plan owned(plan);
  peerway::check(pw_plan_set_timeout(plan, timeout_ns));
  return owned;
}

/// What the planned variants share. `exchange` can be switched off: the variant none.
class Planned : public Variant {
 public:
  Planned(const Problem& problem, peerway::Context& context, pw_stream main, bool exchanges)
      : problem_(problem),
        device_(problem.device),
        main_(main),
        overlap_(overlap_of(problem.variant)),
        edge_(overlap_ == Overlap::branch ? device_.queue(true) : main_) {
    if (overlap_ == Overlap::branch && !problem.options.cuda)
      throw Refused("stencil2d: queues of the host do not wait for each other; " + problem.variant +
                    " needs --device cuda.");
    if (!exchanges) return;
    for (int i = 0; i < 2; ++i) {
      regions_.push_back(context.register_memory(problem.field[i], problem.lattice.bytes()));
      plans_[i] = halo(problem.lattice, regions_[i], context, timeout_ns());
    }
  }

  std::optional<double> exchange_alone(uint64_t times) override {
    if (!plans_[0]) return std::nullopt;
    exchange(0);
    device_.mark(main_);
    for (uint64_t i = 0; i < times; ++i) exchange(static_cast<int>(i % 2));
    device_.mark(main_);
    finish_queue();
    return device_.marks()[1] / static_cast<double>(times);
  }

 protected:
  uint64_t timeout_ns() const { return static_cast<uint64_t>(1e9 * problem_.options.timeout_s); }
  void sweep(Part part, int now, pw_stream queue) {
    device_.sweep(part, problem_.lattice, problem_.field[now], problem_.field[1 - now], queue);
  }
  virtual void exchange(int now) {
    if (plans_[now]) peerway::check(pw_plan_run_on(plans_[now].get(), main_));
  }
  void start(int now, pw_stream queue) {
    if (plans_[now]) peerway::check(pw_plan_start_on(plans_[now].get(), queue));
  }
  void finish(int now, pw_stream queue) {
    if (plans_[now]) peerway::check(pw_plan_finish_on(plans_[now].get(), queue));
  }

  /// Waits for what was enqueued; throws when a plan was cancelled on the way.
  void finish_queue() {
    device_.wait(main_);  // the plans' own timeouts end it
    for (const Plan& plan : plans_)
      if (plan) peerway::check(pw_plan_status(plan.get()));
  }

  const Problem& problem_;
  Device& device_;
  pw_stream main_;
  Overlap overlap_;
  pw_stream edge_;  // the main queue, unless the exchange has one of its own
  std::vector<peerway::Region> regions_;
  std::array<Plan, 2> plans_;
};

/// The host starts and awaits every exchange, and waits for the kernels before it starts the next.
class HostDriven : public Planned {
 public:
  HostDriven(const Problem& problem, peerway::Context& context)
      : Planned(problem, context,
                problem.options.cuda ? problem.device.queue(false) : HostDevice::calling_thread(), true) {}

  std::vector<double> run(uint64_t steps, uint64_t batch) override {
    device_.mark(main_);
    for (uint64_t n = 0; n < steps; ++n) {
      one_step(static_cast<int>(n % 2));
      if ((n + 1) % batch == 0) device_.mark(main_);
    }
    finish_queue();
    return differences(device_.marks());
  }

 protected:
  void exchange(int now) override {
    peerway::check(pw_plan_start(plans_[now].get(), nullptr));
    peerway::check(pw_plan_finish(plans_[now].get(), timeout_ns()));
  }

 private:
  void one_step(int now) {
    if (overlap_ == Overlap::serial) {
      exchange(now);
      sweep(Part::all, now, main_);
    } else {
      peerway::check(pw_plan_start(plans_[now].get(), nullptr));
      sweep(Part::interior, now, main_);
      peerway::check(pw_plan_finish(plans_[now].get(), timeout_ns()));
      sweep(Part::boundary, now, main_);
    }
    device_.wait(main_);
  }
};

/// All is enqueued by the host, which runs ahead and waits once, at the end.
class OnStream : public Planned {
 public:
  OnStream(const Problem& problem, peerway::Context& context, bool exchanges)
      : Planned(problem, context, problem.device.queue(false), exchanges) {}

  std::vector<double> run(uint64_t steps, uint64_t batch) override {
    device_.mark(main_);
    for (uint64_t n = 0; n < steps; n += batch) {
      enqueue(n, batch);
      device_.mark(main_);
    }
    finish_queue();
    return differences(device_.marks());
  }

 protected:
  /// Steps first to first + count - 1; what follows in the main queue follows all of it.
  virtual void enqueue(uint64_t first, uint64_t count) {
    if (overlap_ == Overlap::branch) device_.follow(edge_, main_);
    for (uint64_t n = first; n < first + count; ++n) one_step(static_cast<int>(n % 2));
    if (overlap_ == Overlap::branch) device_.follow(main_, edge_);
  }

 private:
  void one_step(int now) {
    switch (overlap_) {
      case Overlap::serial:
        exchange(now);
        sweep(Part::all, now, main_);
        return;
      case Overlap::order:
        start(now, main_);
        sweep(Part::interior, now, main_);
        finish(now, main_);
        sweep(Part::boundary, now, main_);
        return;
      case Overlap::branch:
        branch_step(now);
        return;
    }
  }

  /// This interior follows the last boundary, but not this exchange. This boundary overwrites what the last
  /// interior read, so it follows that one, but not this interior: the exchange has the time of two
  /// interiors.
  void branch_step(int now) {
    device_.follow(main_, edge_);
    start(now, edge_);
    finish(now, edge_);
    device_.follow(edge_, main_);
    sweep(Part::interior, now, main_);
    sweep(Part::boundary, now, edge_);
  }
};

/// As OnStream, recorded once: every batch is one replay.
class InGraph : public OnStream {
 public:
  InGraph(const Problem& problem, peerway::Context& context) : OnStream(problem, context, true) {
    const uint64_t batch = problem.options.batch;
    if (batch % 2 != 0)
      throw Refused(
          "stencil2d: a graph holds --batch steps, and " + std::to_string(batch) +
          " is odd: its replay would begin with the wrong one of the two arrays; give an even number.");
    graph_ = device_.capture(main_, [&] { OnStream::enqueue(0, batch); });
  }

 protected:
  void enqueue(uint64_t, uint64_t) override { graph_->replay(main_); }

 private:
  std::unique_ptr<Graph> graph_;
};

}  // namespace

std::unique_ptr<Variant> make_planned(const Problem& problem, peerway::Context& context) {
  const std::string name = name_of(problem.variant);
  if (name == "host-driven") return std::make_unique<HostDriven>(problem, context);
  if (name == "graph") return std::make_unique<InGraph>(problem, context);
  return std::make_unique<OnStream>(problem, context, name != "none");
}

}  // namespace stencil
