-- Looks whether every page of a copy fits the others.
pragma quick_check(1)
