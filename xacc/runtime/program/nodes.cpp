// Nodes and templates.
#include <algorithm>
#include <string>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"
#include "xacc/runtime/program/program.h"

namespace pwx {
namespace {

void check_dims(const char* kind, const char* name, int ndims) {
  if (ndims < 1 || ndims > PWX_MAX_DIMS)
    refuse(kind, " ", name, " has ", ndims, " dimensions; 1 to ", PWX_MAX_DIMS, " are possible");
}

/// The ranks that new nodes are made of.
std::vector<int> ranks_for(const pwx_ref* of, bool executing) {
  if (of == nullptr) return executing ? program().executing().ranks : program().all().ranks;
  std::vector<int> ranks;
  for (const int number : numbers_of(*of)) ranks.push_back(nodes_of(*of).ranks[number]);
  return ranks;
}

/// Whether the nodes that a reference names differ between ranks.
bool depends_on_rank(const pwx_ref& of) {
  const int ndims = of.nodes != nullptr ? of.nodes->ndims : of.on_template->ndims;
  return nodes_of(of).own != 0 ||
         std::any_of(of.sub, of.sub + ndims, [](const pwx_sub& sub) { return sub.kind == PWX_MINE; });
}

/// Fills in the size that is left open, and checks that there are enough processes.
void set_sizes(pwx_nodes& nodes, const int* sizes, int available, const std::string& source) {
  int known = 1, open = -1;
  for (int d = 0; d < nodes.ndims; ++d) {
    nodes.size[d] = sizes[d];
    const bool left_open = sizes[d] == PWX_OPEN;
    if (left_open && open >= 0) refuse("nodes ", nodes.name, " has `*` twice; one size can be left open");
    if (!left_open && sizes[d] < 1)
      refuse("nodes ", nodes.name, " has a size of ", sizes[d], "; it must be at least 1");
    if (left_open)
      open = d;
    else
      known *= sizes[d];
  }
  if (open >= 0) {
    nodes.size[open] = std::max(available / known, 1);
    if (available % known != 0)
      refuse("nodes ", nodes.name, " is to share ", available, " ", source, " among ", known,
             ", which does not divide it; start another number");
  }
  nodes.total = open >= 0 ? known * nodes.size[open] : known;
  if (nodes.total > available)
    refuse("nodes ", nodes.name, " needs ", nodes.total, " ", source, ", but there ",
           available == 1 ? "is " : "are ", available, "; start more, or make it smaller");
}

/// Divides a template, which is fixed and distributed, into its parts.
void divide_into_parts(pwx_template& t, const long* widths, const long* const* sizes) {
  for (int d = 0; d < t.ndims; ++d) {
    pwx_template_dim& dim = t.dim[d];
    if (dim.kind == PWX_GBLOCK) {
      if (sizes == nullptr || sizes[d] == nullptr)
        refuse("template ", t.name, " has gblock(*); give the sizes in template_fix");
      auto* starts = new long[static_cast<size_t>(dim.parts) + 1];  // freed by pwx_template_end, if at all
      starts[0] = dim.first;
      for (int part = 0; part < dim.parts; ++part) {
        if (sizes[d][part] < 0)
          refuse("template ", t.name, " has a gblock size of ", sizes[d][part], "; it must be at least 0");
        starts[part + 1] = starts[part] + sizes[d][part];
      }
      delete[] dim.starts;
      dim.starts = starts;
    }
    settle(dim, widths == nullptr ? 0 : widths[d], text("a dimension of template ", t.name));
  }
}

void set_bounds(pwx_template& t, const long* first, const long* last) {
  for (int d = 0; d < t.ndims; ++d) {
    if (last[d] < first[d] - 1)
      refuse("template ", t.name, " goes from ", first[d], " to ", last[d], "; the last must not be less");
    t.dim[d].first = first[d];
    t.dim[d].last = last[d];
  }
  t.fixed = 1;
}

bool needs_sizes(const pwx_template& t, const long* const* sizes) {
  for (int d = 0; d < t.ndims; ++d)
    if (t.dim[d].kind == PWX_GBLOCK && (sizes == nullptr || sizes[d] == nullptr)) return true;
  return false;
}

/// A file-scope template that is fixed later.
struct FixedLater {
  pwx_template* t;
  void (*call)(void);
  std::string declared;  ///< its name, line and file, without folders
};
std::vector<FixedLater>& fixed_later() {
  static auto& all = *new std::vector<FixedLater>;  // outlives atexit
  return all;
}

void fix(pwx_template& t, const long* first, const long* last, const long* const* sizes) {
  if (t.fixed) refuse("template ", t.name, " is fixed already; its bounds stay");
  if (!t.distributed) refuse("template ", t.name, " is not distributed; distribute it first");
  if (first != nullptr) set_bounds(t, first, last);
  long widths[PWX_MAX_DIMS];
  for (int d = 0; d < t.ndims; ++d) widths[d] = t.dim[d].kind == PWX_DUPLICATED ? 0 : t.dim[d].width;
  divide_into_parts(t, widths, sizes);
  t.fixed = 1;
}

/// The template, and those of other files that are the same template.
std::vector<FixedLater> all_of(pwx_template& t) {
  std::vector<FixedLater> later;
  const auto known = std::ranges::find(fixed_later(), &t, &FixedLater::t);
  if (known == fixed_later().end()) return {{&t, nullptr, {}}};
  for (const FixedLater& entry : fixed_later())
    if (entry.declared == known->declared) later.push_back(entry);
  return later;
}

void name(pwx_template& t, const char* name, int ndims) {
  check_dims("template", name, ndims);
  t.name = name;
  t.ndims = ndims;
  t.fixed = t.distributed = 0;  // in a function, it may have been fixed by an earlier call
}

}  // namespace
}  // namespace pwx

extern "C" {

void pwx_nodes_init(pwx_nodes* nodes, const char* name, int ndims, const int* sizes, const pwx_ref* of,
                    int executing, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::check_dims("nodes", name, ndims);
    nodes->name = name;
    nodes->ndims = ndims;
    nodes->own = of != nullptr && pwx::depends_on_rank(*of) ? 1 : 0;
    std::vector<int> ranks = pwx::ranks_for(of, executing != 0);
    const std::string source = of != nullptr    ? pwx::text("nodes of ", pwx::text_of(*of))
                               : executing != 0 ? "executing nodes"
                                                : "processes";
    // A rank outside the nodes that these are made of is not a member.
    if (of != nullptr && ranks.empty()) {
      for (int d = 0; d < ndims; ++d) {
        nodes->size[d] = std::max(sizes[d], 1);
        nodes->at[d] = -1;
      }
      nodes->total = 0;
      nodes->member = 0;
      nodes->ranks = nullptr;
      return;
    }
    pwx::set_sizes(*nodes, sizes, static_cast<int>(ranks.size()), source);
    ranks.resize(static_cast<size_t>(nodes->total));
    nodes->ranks = pwx::program().sets.of(ranks).ranks.data();  // sets exist as long as the program
    const auto mine = std::ranges::find(ranks, pwx::program().rank());
    nodes->member = mine != ranks.end() ? 1 : 0;
    const auto at = pwx::coordinates_of(*nodes, static_cast<int>(mine - ranks.begin()));
    for (int d = 0; d < ndims; ++d) nodes->at[d] = nodes->member ? at[static_cast<size_t>(d)] : -1;
  });
}

void pwx_template_init(pwx_template* t, const char* name, int ndims, const long* first, const long* last,
                       const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::name(*t, name, ndims);
    pwx::set_bounds(*t, first, last);
  });
}

void pwx_template_open(pwx_template* t, const char* name, int ndims, const pwx_where* where) {
  pwx::guarded(where, [&] { pwx::name(*t, name, ndims); });
}

void pwx_template_end(pwx_template* t) {
  for (pwx_template_dim& dim : t->dim) {
    delete[] dim.starts;
    dim.starts = nullptr;
  }
}

void pwx_distribute(pwx_template* t, const pwx_nodes* nodes, const pwx_kind* kinds, const long* widths,
                    const long* const* sizes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    int next = 0;
    for (int d = 0; d < t->ndims; ++d) next += kinds[d] != PWX_DUPLICATED ? 1 : 0;
    if (next != nodes->ndims)
      pwx::refuse("template ", t->name, " is distributed in ", next, " dimensions, but nodes ", nodes->name,
                  " has ", nodes->ndims, "; they must be as many");
    next = 0;
    t->nodes = nodes;
    for (int d = 0; d < t->ndims; ++d) {
      pwx_template_dim& dim = t->dim[d];
      dim.kind = kinds[d];
      dim.nodes_dim = kinds[d] == PWX_DUPLICATED ? -1 : next++;
      dim.parts = dim.nodes_dim < 0 ? 1 : nodes->size[dim.nodes_dim];
      dim.at = nodes->member == 0 ? -1 : dim.nodes_dim < 0 ? 0 : nodes->at[dim.nodes_dim];
      // As requested, until the template is fixed.
      dim.width = widths == nullptr ? 0 : widths[d];
    }
    t->distributed = 1;
    if (t->fixed && !pwx::needs_sizes(*t, sizes)) pwx::divide_into_parts(*t, widths, sizes);
    if (t->fixed && pwx::needs_sizes(*t, sizes)) t->fixed = 0;
  });
}

void pwx_template_fix(pwx_template* t, const long* first, const long* last, const long* const* sizes,
                      const pwx_where* where) {
  pwx::guarded(where, [&] {
    const std::vector<pwx::FixedLater> all = pwx::all_of(*t);
    for (const pwx::FixedLater& entry : all) pwx::fix(*entry.t, first, last, sizes);
    for (const pwx::FixedLater& entry : all)
      if (entry.call != nullptr) entry.call();
  });
}

void pwx_when_fixed(pwx_template* t, void (*call)(void), const pwx_where* declared) {
  const std::string file = declared->file;
  pwx::fixed_later().push_back(
      {t, call, pwx::text(t->name, " ", declared->line, " ", file.substr(file.rfind('/') + 1))});
}

}  // extern "C"
