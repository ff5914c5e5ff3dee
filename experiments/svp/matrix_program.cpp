// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/matrix_program.h"

#include <algorithm>

namespace tombolo::experiments {
namespace {

constexpr std::uint64_t element = sizeof(double);

void append(Arrays& arrays, const Matrix& matrix) {
  arrays.insert(arrays.end(), matrix.rows.begin(), matrix.rows.end());
}

Matrix matrix_of(const Arrays& arrays, std::uint64_t number, std::uint64_t size) {
  const auto first = arrays.begin() + static_cast<std::ptrdiff_t>(number * size);
  return {.size = size, .rows = {first, first + static_cast<std::ptrdiff_t>(size)}};
}

std::vector<Shape> rows_of_three(const Scalars& scalars) {
  const std::uint64_t size = scalars[0];
  const Run row{size, element};
  std::vector<Shape> shapes(2 * size, Shape{true, false, row});
  shapes.insert(shapes.end(), size, Shape{false, true, row});
  return shapes;
}

}  // namespace

Status Decomposition::multiply(const Matrix& a, const Matrix& b, int steps, Matrix* c) {
  Product whole;
  whole.a = a;
  whole.b = b;
  whole.c = *c;
  TOMBOLO_TRY(create_parts(whole, steps));
  all_created_ = node_.system().now();
  TOMBOLO_TRY(sync(whole));
  TOMBOLO_TRY(add_all(whole));
  free_parts(whole);
  *c = whole.c;
  return {};
}

Status Decomposition::create(Product& product, int steps) {
  if (steps > 0) return create_parts(product, steps);
  TOMBOLO_TRY(Matrix::allocate(node_, product.a.size, &product.c));
  product.own = true;
  RemoteCall call{.function = places_.function, .scalars = {product.a.size}};
  append(call.arrays, product.a);
  append(call.arrays, product.b);
  append(call.arrays, product.c);
  const simulator::CoreId place = places_.places[created_++ % places_.places.size()];
  TOMBOLO_TRY(node_.create(place, call, &product.family));
  note_use();
  return {};
}

Status Decomposition::create_parts(Product& product, int steps) {
  for (std::uint64_t row = 0; row < 2; ++row)
    for (std::uint64_t column = 0; column < 2; ++column)
      for (std::uint64_t k = 0; k < 2; ++k) {
        product.parts.push_back(std::make_unique<Product>());
        Product& part = *product.parts.back();
        part.a = product.a.part(row, k);
        part.b = product.b.part(k, column);
        TOMBOLO_TRY(create(part, steps - 1));
      }
  return {};
}

Status Decomposition::sync(Product& product) {
  for (const std::unique_ptr<Product>& part : product.parts) TOMBOLO_TRY(sync(*part));
  if (!product.parts.empty()) return {};
  const Status status = node_.sync(product.family);
  note_use();
  return status;
}

Status Decomposition::add_all(Product& product) {
  if (product.parts.empty()) return {};
  for (const std::unique_ptr<Product>& part : product.parts) TOMBOLO_TRY(add_all(*part));
  return add_parts(product);
}

void Decomposition::free_parts(const Product& product) {
  for (const std::unique_ptr<Product>& part : product.parts) {
    free_parts(*part);
    if (part->own) part->c.free(node_);
  }
}

Status Decomposition::add_parts(Product& product) {
  if (product.c.rows.empty()) {
    TOMBOLO_TRY(Matrix::allocate(node_, product.a.size, &product.c));
    product.own = true;
    note_use();
  }
  for (std::size_t i = 0; i < product.parts.size(); i += 2)
    add(node_, product.parts[i]->c, product.parts[i + 1]->c, product.c.part(i / 4, i / 2 % 2));
  return {};
}

void Decomposition::note_use() {
  most_bytes_used_ = std::max(most_bytes_used_, node_.bytes_used());
}

std::vector<Function> matrix_functions(std::vector<MatrixPlaces> of_worker_masters) {
  const Function work{.scalars = 1,
                      .describe = rows_of_three,
                      .run = [](Node& node, const Scalars& scalars, const Arrays& arrays) {
                        multiply(node, matrix_of(arrays, 0, scalars[0]),
                                 matrix_of(arrays, 1, scalars[0]),
                                 matrix_of(arrays, 2, scalars[0]));
                        return Status();
                      }};
  const Function delegate{.scalars = 1,
                          .describe = rows_of_three,
                          .run = [all = std::move(of_worker_masters)](
                                     Node& node, const Scalars& scalars, const Arrays& arrays) {
                            const MatrixPlaces& places = all.at(node.cpu().id().index());
                            Decomposition decomposition(node, places);
                            Matrix c = matrix_of(arrays, 2, scalars[0]);
                            return decomposition.multiply(matrix_of(arrays, 0, scalars[0]),
                                                          matrix_of(arrays, 1, scalars[0]), 1, &c);
                          }};
  return {work, delegate};
}

}  // namespace tombolo::experiments
