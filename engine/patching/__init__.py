"""Changes of a store that are not made yet: values, a view of the store as they would leave it, and making them."""
