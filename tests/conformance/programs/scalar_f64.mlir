func.func @combine(%a: f64, %b: f64) -> f64 {
  %product = arith.mulf %a, %b : f64
  %sum = arith.addf %product, %b : f64
  return %sum : f64
}
