! Each directive of XcalableMP in Fortran, on any number of nodes, compared with what a sequential program has.
module fields
  implicit none
  integer, parameter :: n = 23, m = 17
  real(8) :: whole(0:n + 1, m)
!$xmp nodes q(*)
!$xmp template s(0:n + 1, m)
!$xmp distribute s(*, block) onto q
!$xmp align whole(i, j) with s(i, j)
!$xmp shadow whole(0, 2:1)
  integer :: wrong = 0
contains
  subroutine check(right, about)
    logical, intent(in) :: right
    character(*), intent(in) :: about
    if (right) return
    wrong = wrong + 1
    print *, 'wrong: ', about
  end subroutine check

  subroutine fill
    integer :: i, j
!$xmp loop (j) on s(*, j)
    do j = 1, m
      do i = 0, n + 1
        whole(i, j) = 100 * i + j
      end do
    end do
  end subroutine fill
end module fields

program directives
  use fields
  use xmp_lib
  implicit none
!$xmp nodes p(*)
!$xmp template t(n)
!$xmp template u(n)
!$xmp template v(n)
!$xmp distribute t(block) onto p
!$xmp distribute u(cyclic) onto p
!$xmp distribute v(cyclic(3)) onto p
  integer :: a(n), b(n), c(n), d(n, 4), local(n)
!$xmp align (i) with t(i) :: a
!$xmp align b(i) with u(i)
!$xmp align c(i) with v(i)
!$xmp align d(i, *) with t(i)
!$xmp shadow a(1)
  integer :: i, sum_of_a, most, where_most, k(3), status
  logical :: all_of, any_of
  real(4) :: x
  complex(8) :: z
  integer, allocatable :: later(:)
!$xmp align later(i) with t(i + 1)
!$xmp shadow later(1:2)

  call check(xmp_num_nodes() == xmp_all_num_nodes(), 'number of nodes')

!$xmp loop on t(i)
  do i = 1, n
    a(i) = i * i
  end do
!$xmp loop (i) on u(i)
  do i = 1, n
    b(i) = i
  end do
!$xmp loop (i) on v(i)
  do i = 1, n, 2
    c(i) = i
  end do
!$xmp loop (i) on v(i)
  do 10 i = 2, n, 2
    c(i) = -i
10 continue

  sum_of_a = 1000
!$xmp loop on t(i) reduction(+: sum_of_a)
  do i = 1, n
    sum_of_a = sum_of_a + a(i)
  end do
  call check(sum_of_a == 1000 + n * (n + 1) * (2 * n + 1) / 6, 'reduction of a sum')
  sum_of_a = 0
!$xmp loop on v(i) reduction(+: sum_of_a)
  do i = n, n
    sum_of_a = sum_of_a + c(i)
  end do
  call check(sum_of_a == n, 'one iteration of a cyclic loop')
  sum_of_a = 0
!$xmp loop on t(i) reduction(+: sum_of_a)
  do i = n - 1, 2, -3
    sum_of_a = sum_of_a + i
  end do
  call check(sum_of_a == sum([(i, i = n - 1, 2, -3)]), 'a descending loop')

  most = -1
  where_most = -1
!$xmp loop on t(i) reduction(firstmax: most /where_most/)
  do i = 1, n
    if (mod(a(i), 10) > most) then
      most = mod(a(i), 10)
      where_most = i
    end if
  end do
  call check(most == 9 .and. where_most == 3, 'firstmax')

  x = 2
!$xmp loop on t(i) reduction(*: x)
  do i = 1, 5
    x = x * i
  end do
  call check(x == 240, 'reduction of a product')
  all_of = .true.
  any_of = .false.
!$xmp loop on t(i) reduction(.and.: all_of) reduction(.or.: any_of)
  do i = 1, n
    all_of = all_of .and. i <= n
    any_of = any_of .or. i == 7
  end do
  call check(all_of .and. any_of, 'reduction of logicals')
  k = [1, 2, 3]
!$xmp reduction (+: k)
  call check(all(k == [1, 2, 3] * xmp_num_nodes()), 'reduction of an array')
  z = (1, 2)
!$xmp reduction (+: z)
  call check(z == (1, 2) * xmp_num_nodes(), 'reduction of a complex number')

  k = 0
!$xmp task on p(1)
  k = [4, 5, 6]
  call check(xmp_num_nodes() == 1, 'a task of one node')
!$xmp end task
!$xmp bcast (k(2:3)) from p(1)
  call check(all(k(2:3) == [5, 6]), 'bcast of a section')

!$xmp reflect (a)
!$xmp loop on t(i)
  do i = 2, n - 1
    d(i, :) = a(i - 1) + a(i + 1)
  end do
  most = 0
!$xmp loop on t(i) reduction(max: most)
  do i = 2, n - 1
    most = max(most, maxval(abs(d(i, :) - 2 * (i * i + 1))))
  end do
  call check(most == 0, 'reflect')
!$xmp reflect (a) width(/periodic/1)
  status = 0
!$xmp loop on t(i) reduction(+: status)
  do i = 1, n, n - 1
    if (i == 1) status = status + a(i - 1) - n * n
    if (i == n) status = status + a(i + 1) - 1
  end do
  call check(status == 0, 'a periodic reflect')

  local = 0
!$xmp gmove
  local(:) = a(:)
  call check(all(local == [(i * i, i = 1, n)]), 'gmove to a local array')
!$xmp gmove
  local(2:n:2) = c(2:n:2)
  call check(all(local(2:n:2) == [(-i, i = 2, n, 2)]), 'gmove with steps')
!$xmp gmove
  b(1:n - 3) = c(4:n)
!$xmp gmove
  local = b
  call check(all(local(1:n - 3) == [(merge(i, -i, mod(i, 2) == 1), i = 4, n)]), 'gmove between mappings')
!$xmp gmove
  a(5:7) = [50, 60, 70]
!$xmp barrier
!$xmp gmove in
  k(1:3) = a(5:7)
  call check(all(k == [50, 60, 70]), 'gmove of values, and gmove in')
!$xmp barrier

!$xmp array on t
  a = 2 * a + 1
!$xmp array on t(2:n - 1)
  d(2:n - 1, 2:3) = 7
!$xmp gmove
  local = a
  call check(all(local(5:7) == [101, 121, 141]), 'array on a template')
  sum_of_a = 0
!$xmp loop on t(i) reduction(+: sum_of_a)
  do i = 2, n - 1
    sum_of_a = sum_of_a + d(i, 2) + d(i, 3)
  end do
  call check(sum_of_a == 14 * (n - 2), 'array on a range')

  allocate (later(0:n - 1), stat=status)
  call check(status == 0 .and. allocated(later), 'allocate')
!$xmp loop on t(i + 1)
  do i = 0, n - 1
    later(i) = i
  end do
!$xmp reflect (later)
  sum_of_a = 0
!$xmp loop on t(i + 1) reduction(+: sum_of_a)
  do i = 0, n - 3
    sum_of_a = sum_of_a + later(i + 2) - i
  end do
  call check(sum_of_a == 2 * (n - 2), 'an allocated array with a shadow')
  deallocate (later)
  call check(.not. allocated(later), 'deallocate')

  call fill
!$xmp reflect (whole)
  call middle
  call shaped(whole, a, n)
  call transformed(5, 7)
  call widened
  call inquiries
  call dummy(a, n)
  call dummy(a, n)
  do i = 1, 3
    call mine(i)
  end do
!$xmp reduction (+: wrong)
!$xmp task on p(1)
  print '(i0, a, i0, a)', xmp_all_num_nodes(), ' nodes, ', wrong, ' wrong'
!$xmp end task
  if (wrong /= 0) error stop 1

contains

  ! an array of the module through its halo, two dimensions of it
  subroutine middle
    real(8) :: worst
    integer :: i, j
    worst = 0
!$xmp loop (j) on s(*, j) reduction(max: worst)
    do j = 3, m - 1
      do i = 0, n + 1
        worst = max(worst, abs(whole(i, j - 2) + whole(i, j + 1) - (200 * i + 2 * j - 1)))
      end do
    end do
    call check(worst == 0, 'an array of a module')
  end subroutine middle

  ! a dummy argument
  subroutine dummy(given, size_of_it)
    integer, intent(in) :: size_of_it
    integer :: given(size_of_it)
!$xmp align given(i) with t(i)
!$xmp shadow given(1)
    integer :: total, i
    total = 0
!$xmp loop on t(i) reduction(+: total)
    do i = 1, size_of_it
      if (i >= 5 .and. i <= 7) total = total + given(i)
    end do
    call check(total == 363, 'a dummy argument')
  end subroutine dummy

  ! dummy arguments that have the sizes of their actual arguments
  subroutine shaped(field, given, rows)
    integer, intent(in) :: rows
    real(8), intent(inout) :: field(0:, :)
    integer, intent(in) :: given(*)
!$xmp align field(i, j) with s(i, j)
!$xmp shadow field(0, 2:1)
!$xmp align given(i) with t(i)
!$xmp shadow given(1)
    integer :: total, i, j
    real(8) :: worst
    total = 0
!$xmp loop on t(i) reduction(+: total)
    do i = 1, n
      if (i >= 5 .and. i <= 7) total = total + given(i)
    end do
    call check(total == 363, 'an assumed-size array')
!$xmp reflect (field)
    worst = 0
!$xmp loop (j) on s(*, j) reduction(max: worst)
    do j = 3, m - 1
      do i = 0, rows + 1
        worst = max(worst, abs(field(i, j - 2) + field(i, j + 1) - (200 * i + 2 * j - 1)))
      end do
    end do
    call check(worst == 0, 'an assumed-shape array')
  end subroutine shaped

  ! margin executes what expand adds or takes away, and peel_and_wait both, with a wait between
  subroutine widened
!$xmp nodes r(*)
!$xmp template w(n, m)
!$xmp distribute w(*, block) onto r
    integer :: first(n, m), second(n, m), i, j, inner, outer, columns, beyond
!$xmp align first(i, j) with w(i, j)
!$xmp align second(i, j) with w(i, j)
!$xmp shadow first(0, 1)
!$xmp shadow second(0, 1)
    first = 0
!$xmp loop (i, j) on w(i, j) expand(0, -1)
    do j = 1, m
      do i = 1, n
        first(i, j) = first(i, j) + 1
      end do
    end do
!$xmp loop (i, j) on w(i, j) margin(0, -1)
    do j = 1, m
      do i = 1, n
        first(i, j) = first(i, j) + 10
      end do
    end do
    inner = 0
    outer = 0
!$xmp loop (j) on w(*, j)
    do j = 1, m
      inner = inner + count(first(:, j) == 1)
      outer = outer + count(first(:, j) == 10)
    end do
    i = xmp_array_lsize(xmp_desc_of(first), 2, columns)
    call check(outer == n * min(2, columns) .and. inner == n * max(0, columns - 2), 'margin of fewer iterations')
    second = 0
!$xmp loop (i, j) on w(i, j) margin(0, /unbound/1)
    do j = 1, m
      do 20 i = 1, n
        second(i, j) = second(i, j) + 1
20    continue
    end do
    beyond = sum(second)
    inner = 0
!$xmp loop (j) on w(*, j)
    do j = 1, m
      inner = inner + sum(second(:, j))
    end do
    call check(inner == 0 .and. beyond == merge(2 * n, 0, columns > 0), 'margin beyond the bounds')
!$xmp loop (i, j) on w(i, j)
    do j = 1, m
      do i = 1, n
        first(i, j) = i + 100 * j
        second(i, j) = 0
      end do
    end do
!$xmp reflect (first) async(3)
    inner = 5
!$xmp loop (j) on w(*, j) peel_and_wait(3, 0, -1) reduction(+: inner)
    do j = 2, m - 1
      do i = 1, n
        second(i, j) = second(i, j) + first(i, j - 1) + first(i, j + 1) - 2 * i - 200 * j + 1
      end do
      inner = inner + 1
    end do
    call check(inner == 5 + m - 2, 'a reduction with peel_and_wait')
    outer = 0
!$xmp loop (j) on w(*, j) reduction(+: outer)
    do j = 2, m - 1
      outer = outer + count(second(:, j) == 1)
    end do
    call check(outer == n * (m - 2), 'peel_and_wait')
  end subroutine widened

  ! dimensions and subscripts count as the program declares them
  subroutine inquiries
    type(xmp_desc) :: of_template, of_nodes, of_q
    integer :: low, high, number, columns, place, status
    logical :: fixed, replicated
    status = xmp_array_ndims(xmp_desc_of(whole), number)
    status = status + xmp_array_lbound(xmp_desc_of(whole), 1, low)
    status = status + xmp_array_ubound(xmp_desc_of(whole), 1, high)
    call check(status == 0 .and. number == 2 .and. low == 0 .and. high == n + 1, 'bounds of an array')
    status = xmp_array_lshadow(xmp_desc_of(whole), 2, low) + xmp_array_ushadow(xmp_desc_of(whole), 2, high)
    call check(status == 0 .and. low == 2 .and. high == 1, 'shadows of an array')
    status = xmp_array_gcllbound(xmp_desc_of(whole), 2, low) + xmp_array_gclubound(xmp_desc_of(whole), 2, high)
    status = status + xmp_array_lsize(xmp_desc_of(whole), 2, columns)
    status = status + xmp_array_gtol(xmp_desc_of(whole), 2, low, place)
    if (columns > 0) call check(status == 0 .and. high - low + 1 == columns .and. place == 2, 'a part of an array')
    call check(xmp_array_lbound(xmp_desc_of(whole), 3, low) == -1, 'a dimension that does not exist')
    status = xmp_align_template(xmp_desc_of(whole), of_template) + xmp_dist_nodes(of_template, of_nodes)
    status = status + xmp_template_lbound(of_template, 1, low) + xmp_template_ubound(of_template, 1, high)
    call check(status == 0 .and. low == 0 .and. high == n + 1, 'bounds of a template')
    status = xmp_dist_format(of_template, 2, number) + xmp_template_fixed(of_template, fixed)
    call check(status == 0 .and. number == xmp_block .and. fixed, 'a template')
    status = xmp_nodes_size(of_nodes, 1, number) + xmp_nodes_index(of_nodes, 1, place)
    call check(status == 0 .and. number == xmp_all_num_nodes() .and. place == xmp_all_node_num(), 'nodes')
    of_q = xmp_desc_of(q)
    if (xmp_nodes_ndims(of_q, number) == 0) call check(number == 1, 'nodes by their name')
    status = xmp_align_axis(xmp_desc_of(whole), 2, number) + xmp_align_offset(xmp_desc_of(whole), 1, low)
    status = status + xmp_align_replicated(xmp_desc_of(d), 1, replicated)
    call check(status == 0 .and. number == 2 .and. low == 0 .and. .not. replicated, 'an alignment')
  end subroutine inquiries

  ! an array of a procedure, which ends at its return
  subroutine mine(number)
    integer, intent(in) :: number
!$xmp nodes r(*)
!$xmp template w(number * 10)
!$xmp distribute w(block) onto r
    integer :: own(number * 10), total, i
!$xmp align own(i) with w(i)
    own = 0
!$xmp loop on w(i)
    do i = 1, number * 10
      own(i) = i
    end do
    total = 0
!$xmp loop on w(i) reduction(+: total)
    do i = 1, number * 10
      total = total + own(i)
    end do
    call check(total == number * 10 * (number * 10 + 1) / 2, 'an array of a procedure')
    if (number == 2) return
    own = -1
  end subroutine mine

  ! Arrays of other shapes: the order of the dimensions and of their elements matters.
  subroutine transformed(rows, columns)
    integer, intent(in) :: rows, columns
!$xmp nodes r(*)
!$xmp template w(columns)
!$xmp template w0(0:columns - 1)
!$xmp distribute w(block) onto r
!$xmp distribute w0(cyclic) onto r
    integer :: a(rows, columns), turned(columns, rows), square(rows, rows), row(rows, columns), column(rows, columns)
    integer :: shifted(rows, 0:columns - 1), listed(2 * rows), wrong_here
    logical :: odd(rows, columns)
!$xmp align a(*, j) with w(j)
!$xmp align turned(i, *) with w(i)
!$xmp align square(*, j) with w(j)
!$xmp align row(*, j) with w(j)
!$xmp align column(*, j) with w(j)
!$xmp align odd(*, j) with w(j)
!$xmp align shifted(*, j) with w0(j)
!$xmp align listed(*) with w(*)
    integer :: i, j, l
!$xmp loop (j) on w(j)
    do j = 1, columns
      do i = 1, rows
        a(i, j) = i + 10 * j
        odd(i, j) = j == 2 .or. i == 3 .and. j == 4
        row(i, j) = rows + 1 - i
        column(i, j) = columns - j
      end do
    end do
    call xmp_transpose(turned, a, 0)
    call xmp_matmul(xmp_desc_of(square), xmp_desc_of(a), xmp_desc_of(turned))
    wrong_here = 0
!$xmp loop (i) on w(i) reduction(+: wrong_here)
    do i = 1, columns
      do j = 1, rows
        if (turned(i, j) /= j + 10 * i) wrong_here = wrong_here + 1
      end do
    end do
    call check(wrong_here == 0, 'xmp_transpose')
    wrong_here = 0
!$xmp loop (j) on w(j) reduction(+: wrong_here)
    do j = 1, rows
      do i = 1, rows
        if (square(i, j) /= sum([((i + 10 * l) * (j + 10 * l), l = 1, columns)])) &
          wrong_here = wrong_here + 1
      end do
    end do
    call check(wrong_here == 0, 'xmp_matmul')
    if (rows > 0) call xmp_scatter(xmp_desc_of(shifted), xmp_desc_of(a), xmp_desc_of(row), xmp_desc_of(column))
    wrong_here = 0
!$xmp loop (j) on w0(j) reduction(+: wrong_here)
    do j = 0, columns - 1
      do i = 1, rows
        if (shifted(i, j) /= rows + 1 - i + 10 * (columns - j)) wrong_here = wrong_here + 1
      end do
    end do
    call check(wrong_here == 0, 'xmp_scatter')
    call xmp_gather(xmp_desc_of(a), xmp_desc_of(shifted), xmp_desc_of(row), xmp_desc_of(column))
    wrong_here = 0
!$xmp loop (j) on w(j) reduction(+: wrong_here)
    do j = 1, columns
      do i = 1, rows
        if (a(i, j) /= i + 10 * j) wrong_here = wrong_here + 1
      end do
    end do
    call check(wrong_here == 0, 'xmp_gather')
    listed = 0
    call xmp_pack(xmp_desc_of(listed), xmp_desc_of(a), xmp_desc_of(odd))
    call check(all(listed(1:6) == [21, 22, 23, 24, 25, 43]), 'xmp_pack')
    call xmp_sort_down(listed, listed)
    call check(all(listed(1:7) == [43, 25, 24, 23, 22, 21, 0]), 'xmp_sort_down')
  end subroutine transformed
end program directives
