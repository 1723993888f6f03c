select t::text from "{schema}"."{table}" t
