// Errors that generated code reports about its arrays.
#include <string>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/mapping/mapping.h"

extern "C" {

void pwx_array_expect(const pwx_array* a, int d, long ld, const pwx_where* where) {
  if (a->ld[d] == ld) return;
  pwx_error(
      where,
      "the code of %s was generated for %ld elements in dimension %d of a node's memory, but there are %ld",
      a->name, ld, pwx::spoken_dimension(*a, d), a->ld[d]);
}

void pwx_not_in_memory(const pwx_array* a, int d, long i, const char* file, int line) {
  const pwx_where where{file, line};
  const std::string name = a->name == nullptr ? "an array" : a->name;
  const std::string used = pwx::text("element ", pwx::spoken(*a, d, i), " of dimension ",
                                     pwx::spoken_dimension(*a, d), " of ", name, " is used, but ");
  if (a->state == nullptr) pwx::end_with(&where, used + "this is not allocated");
  if (a->on->nodes->member == 0)
    pwx::end_with(&where, used + "this node has no part of it: it is none of the array's nodes");
  const pwx_array_dim& dim = a->dim[d];
  std::string has = "this node has others: it is distributed cyclic";
  if (pwx::template_dim(*a, d)->kind != PWX_CYCLIC) {
    has = dim.first > dim.last ? "this node owns none"
                               : pwx::text("this node owns ", pwx::spoken(*a, d, dim.first), " to ",
                                           pwx::spoken(*a, d, dim.last));
    if (dim.held > 0)
      has += pwx::text(" and has ", pwx::spoken(*a, d, dim.base), " to ",
                       pwx::spoken(*a, d, dim.base + dim.held - 1), " in its memory");
  }
  pwx::end_with(&where,
                pwx::text(used, has, " (of ", pwx::spoken(*a, d, 0), " to ", pwx::spoken(*a, d, dim.size - 1),
                          "); subscripts count in the whole array: let an xmp loop or a task give "
                          "each node what it owns"));
}

}  // extern "C"
