"""Schools on the nodes of Citus: which node has a school, what every node has, and moving a school to another.

A school's schema, given to Citus (`citus_schema_distribute`), lies whole on one node. Requests go straight to that
node; the operator's work goes through the coordinator. Citus knows of each node's tables on every node, and makes
roles, functions and grants on all of them.

`placement`  the object that the rest of the program asks, in place of that of one server (`tenants.placement`)
`nodes`      the nodes, and which school is where
`registry`   the registry on every node, and the functions with which a node admits a transaction
`moving`     moving a school to another node
"""
